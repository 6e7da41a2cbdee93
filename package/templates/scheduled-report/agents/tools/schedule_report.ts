import type { ToolHandler } from "bobbin";

const KEY = "schedule";

/** The schedule is an effect. The thread stores its id. */
const scheduleReport: ToolHandler<{ cron: string | null; about: string }> = async (state, { cron, about }) => {
  const before = await state.getValue<string>(KEY);
  if (before !== null) await state.removeScheduledEffect(before);
  if (cron === null) {
    await state.setValue(KEY, null);
    return "No more reports are written.";
  }
  const id = await state.scheduleEffect("report_due", { content: `A report is due. ${about}` }, { cron });
  await state.setValue(KEY, id);
  return `A report is written at ${cron} (UTC).`;
};

export default scheduleReport;
