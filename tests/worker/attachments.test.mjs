// Attachments of messages: inline or by the path of a file, as models see them, large ones, and after kills.

import assert from "node:assert/strict";
import { hang, inTurn, say, textOf } from "./support/model.mjs";
import { suite } from "./support/suite.mjs";

/** @typedef {import("./support/client.mjs").Thread} Thread */

const bobbin = suite();
const test = bobbin.test.bind(bobbin);

const sees = { model: { capabilities: { supportsImages: true } } };
const eye = bobbin.agent("eye", () => say("I see."), sees);
const ear = bobbin.agent("ear", () => say("I hear."));
const back = bobbin.agent("back", inTurn(hang(), say("I see again.")), sees);

const head = [0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 3, 0, 2, 0, 0, 0, 0];
const frame = [0x2c, 0, 0, 0, 0, 3, 0, 2, 0, 0, 2, 1, 0x4c, 0, 0x3b];

/** Returns an image of 3 by 2 pixels, padded. @param {number} [bytes] */
function gif(bytes = 28) {
  const picture = Buffer.alloc(bytes);
  picture.set([...head, ...frame]);
  return picture;
}

/** @param {Buffer} data @param {object} [more] */
const inline = (data, more) => ({ name: "dot.gif", mimeType: "image/gif", data: data.toString("base64"), ...more });

/** Returns the last user message that a model received. @param {import("./support/model.mjs").Model} model @returns {any} */
const sent = (model) => model.asked.at(-1)?.messages.findLast(({ role }) => role === "user");

/** @param {Thread} thread @param {string} path */
const stat = async (thread, path) => (await thread.send("GET", `/fs${path}?stat=1`)).status;

test("an image is stored, shown to a model that sees, and served", async () => {
  const thread = await bobbin.client.thread(eye.name);
  await thread.ask("look", { attachments: [inline(gif(), { description: "a dot" })] });
  const [message] = await thread.messages();
  const [attachment] = message.attachments;
  assert.deepEqual(
    [attachment.name, attachment.mimeType, attachment.size, attachment.width, attachment.height, attachment.description],
    ["dot.gif", "image/gif", 28, 3, 2, "a dot"],
  );
  assert.match(attachment.path, /^\/attachments\/\d+-[0-9a-f]{8}\.gif$/);
  const { content } = sent(eye.model);
  assert.match(content[0].text, /^look\n\[attached: dot\.gif \(image\/gif, 28 bytes, 3×2\) at \/attachments\/.*: a dot\]$/);
  assert.equal(content[1].image_url.url, `data:image/gif;base64,${gif().toString("base64")}`);
  assert.equal(await stat(thread, attachment.path), 200);
  assert.equal((await thread.send("DELETE", `/messages/${message.id}`)).status, 200);
  assert.equal(await stat(thread, attachment.path), 404);
});

test("a model that does not see is told what there is and where", async () => {
  const thread = await bobbin.client.thread(ear.name);
  await thread.ask("", { attachments: [inline(gif()), { name: "n.txt", mimeType: "text/plain", data: "aGk=" }] });
  const lines = textOf(sent(ear.model)).split("\n");
  assert.equal(lines.length, 2);
  assert.match(lines[1] ?? "", /^\[attached: n\.txt \(text\/plain, 2 bytes\) at \/attachments\/.*\.txt\]$/);
});

test("a file of the thread is attached by its path", async () => {
  const thread = await bobbin.client.thread(eye.name);
  const body = { data: gif(2_000_000).toString("base64"), mimeType: "image/gif" };
  assert.equal((await thread.send("POST", "/fs/pictures/large.gif", body)).status, 201);
  await thread.ask("look", { attachments: [{ path: "/pictures/large.gif" }] });
  assert.equal(sent(eye.model).content[1].image_url.url.length, 22 + Math.ceil(2_000_000 / 3) * 4);
  const [message] = await thread.messages();
  assert.deepEqual([message.attachments[0].path, message.attachments[0].width], ["/pictures/large.gif", 3]);
  const other = await bobbin.client.thread(eye.name);
  const refused = await other.post("look", { attachments: [{ path: "/pictures/large.gif" }] });
  assert.deepEqual([refused.status, refused.json.error.field], [400, "attachments[0].path"]);
});

test("eight megabytes come with a message, one byte more does not, and nothing of it stays", async () => {
  const thread = await bobbin.client.thread(ear.name);
  const most = 8 * 1024 * 1024;
  const refused = await thread.post("x", { attachments: [inline(gif(most)), inline(gif(30))] });
  assert.deepEqual([refused.status, refused.json.error.field], [413, "attachments[1].data"]);
  const stats = async () => (await thread.send("GET", "/fs?stats=1")).json;
  assert.equal((await stats()).fileCount, 0);
  await thread.ask("x", { attachments: [inline(gif(most))] });
  assert.deepEqual([(await stats()).fileCount, (await stats()).totalSize], [1, most]);
});

test("kill -9 in the middle of the answer: the image is shown again", async () => {
  const thread = await bobbin.client.thread(back.name);
  await thread.accepted("look", { attachments: [inline(gif(500_000))] });
  await back.model.request(1);
  await bobbin.server.crash();
  await back.model.request(2);
  assert.equal(sent(back.model).content[1].image_url.url.length, 22 + Math.ceil(500_000 / 3) * 4);
  await thread.idle();
});
