export default () => ({
  status: "success",
  attachments: [{ name: "resource.txt", mimeType: "text/plain", data: btoa("This is an embedded resource content.") }],
});
