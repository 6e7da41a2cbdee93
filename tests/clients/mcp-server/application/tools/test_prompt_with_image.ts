const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

export default () => ({
  status: "success",
  result: "Please analyze the image above.",
  attachments: [{ name: "dot.png", mimeType: "image/png", data: PNG }],
});
