export default (_state: unknown, { resourceUri }: { resourceUri: string }) => ({
  status: "success",
  result: "Please process the file.",
  attachments: [{ name: "file.txt", mimeType: "text/plain", data: btoa(`Embedded resource content of ${resourceUri}.`) }],
});
