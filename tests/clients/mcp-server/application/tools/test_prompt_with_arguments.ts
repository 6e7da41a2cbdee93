export default (_state: unknown, { arg1, arg2 }: { arg1: string; arg2: string }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`;
