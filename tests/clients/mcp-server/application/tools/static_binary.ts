const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

export default () => ({ status: "success", attachments: [{ name: "dot.png", mimeType: "image/png", data: PNG }] });
