
// Endpoints: `(request, state, params)`.
import { answered, received } from "./bobbin/http.js";

export default async (request, params) => {
  const answer = await answered(await called(received(request), state, params));
  await Promise.all(open);
  return answer;
};
