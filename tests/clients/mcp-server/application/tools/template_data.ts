export default (_state: unknown, { id }: { id: string }) => ({ id, templateTest: true, data: `Data for ID: ${id}` });
