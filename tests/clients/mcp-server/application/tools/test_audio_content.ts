const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

export default () => ({ status: "success", attachments: [{ name: "silence.wav", mimeType: "audio/wav", data: WAV }] });
