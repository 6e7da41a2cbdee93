import { steps } from "./steps.mjs";

steps(false);
