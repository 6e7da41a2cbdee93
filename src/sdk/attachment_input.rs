//! Attachments in a request: `[{name, mimeType, data, …} | {path, …}]`.

use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::limits;
use crate::request::fields::Body;
use crate::sdk::messages::NewAttachment;
use crate::store::base64_text;

/// Fields of a stored attachment. A client may send them back unchanged; only the path is used.
const OF_STORED: [&str; 8] = ["id", "type", "name", "mimeType", "size", "width", "height", "notShown"];

/// Fields of an attachment that comes with its message. `path` may only be `null`.
const OF_NEW: [&str; 9] =
    ["name", "mimeType", "data", "description", "width", "height", "metadata", "thumbnail", "path"];

/// Parses the `attachments` of a request's body.
pub(crate) fn parse(body: &mut Body) -> Result<Vec<NewAttachment>> {
    match body.take("attachments") {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => listed(list),
        Some(_) => Err(Error::field("attachments", "`attachments` must be a list.")),
    }
}

/// Parses the attachments of a message, or of a tool's result.
pub(crate) fn listed(list: Vec<Value>) -> Result<Vec<NewAttachment>> {
    if list.len() > limits::ATTACHMENTS {
        let message =
            format!("{} attachments are too many; the limit is {}.", list.len(), limits::ATTACHMENTS);
        return Err(too_large("attachments", message));
    }
    let mut left = limits::ATTACHMENT_BYTES;
    let parsed = list.into_iter().enumerate().map(|(at, item)| {
        // Errors name the field within the item.
        one(item, &mut left).map_err(|error| within(at, error))
    });
    parsed.collect()
}

/// Adds the index of an attachment to its error.
pub(crate) fn within(at: usize, error: Error) -> Error {
    let field = error.field.as_deref().map_or(String::new(), |field| format!(".{field}"));
    error.at(format!("attachments[{at}]{field}"))
}

fn one(item: Value, left: &mut usize) -> Result<NewAttachment> {
    let Value::Object(fields) = item else {
        return Err(Error::new(Code::InvalidField, "An attachment must be an object."));
    };
    let is_stored = fields.get("path").is_some_and(|path| !path.is_null());
    let known = if is_stored {
        ["path", "data", "description"].iter().chain(&OF_STORED)
    } else {
        OF_NEW.iter().chain(&[])
    };
    let mut body = Body::of(fields).known(&known.copied().collect::<Vec<_>>())?;
    if is_stored { by_path(&mut body) } else { inline(&mut body, left) }
}

fn by_path(body: &mut Body) -> Result<NewAttachment> {
    if body.take("data").is_some() {
        return Err(Error::field("path", "Give `data` or `path`, not both."));
    }
    let path = body.string("path")?.ok_or_else(|| Error::missing("path"))?;
    for name in OF_STORED {
        body.take_even_null(name);
    }
    Ok(NewAttachment::Path { path, description: body.string("description")? })
}

fn inline(body: &mut Body, left: &mut usize) -> Result<NewAttachment> {
    body.take_even_null("path");
    let data = body.string("data")?.ok_or_else(|| {
        Error::missing("data").hint("Give `name`, `mimeType` and `data` in base64, or the `path` of a file.")
    })?;
    let data = data.split_once(";base64,").map_or(data.as_str(), |(_, data)| data);
    let data = base64_text::decode(data).map_err(|error| Error::field("data", format!("`data` {error}.")))?;
    *left = left.checked_sub(data.len()).ok_or_else(|| {
        let limit = limits::ATTACHMENT_BYTES;
        too_large("data", format!("The attachments of a message have at most {limit} bytes together."))
            .hint("Write larger files with PUT …/fs/{path}, and attach them by their `path`.")
    })?;
    let name = body.string("name")?.ok_or_else(|| Error::missing("name"))?;
    let mime_type = body.string("mimeType")?.ok_or_else(|| Error::missing("mimeType"))?;
    let options = crate::store::file_record::options(body)?;
    let description = body.string("description")?;
    Ok(NewAttachment::Inline { name, mime_type, data: data.into(), options, description })
}

/// Refuses long names and descriptions: each is stored in a row, and sent with every request to the model.
pub(crate) fn check(attachment: &NewAttachment) -> Result<()> {
    let (name, description) = match attachment {
        NewAttachment::Path { description, .. } => (None, description),
        NewAttachment::Inline { name, description, .. } => (Some(name), description),
    };
    let texts = [
        ("name", name, limits::ATTACHMENT_NAME_BYTES),
        ("description", description.as_ref(), limits::ATTACHMENT_TEXT_BYTES),
    ];
    for (field, text, limit) in texts {
        // The row stores JSON, where a control character takes six bytes.
        let bytes = text.map_or(0, |text| Value::from(text.as_str()).to_string().len().saturating_sub(2));
        if bytes > limit {
            return Err(too_large(field, format!("`{field}` has {bytes} bytes; the limit is {limit}.")));
        }
    }
    Ok(())
}

fn too_large(field: &str, message: String) -> Error {
    Error::new(Code::TooLarge, message).at(field)
}
