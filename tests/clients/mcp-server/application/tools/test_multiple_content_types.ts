const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

export default () => ({
  status: "success",
  result: "Multiple content types test:",
  attachments: [
    { name: "dot.png", mimeType: "image/png", data: PNG },
    { name: "data.json", mimeType: "application/json", data: btoa(JSON.stringify({ test: "data", value: 123 })) },
  ],
});
