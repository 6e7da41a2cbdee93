//! Decodes a response into deltas: a stream of events, or one JSON body. Unknown events and items (server
//! tools, future ones) are skipped. An item's last event contains all of it, which fills in what earlier
//! events lacked. `items` finds the item of an event.

use serde_json::value::RawValue;

use crate::decoding::{End, EventError, Format, ResponseDecoder};
use crate::lenient::Text;
use crate::response::SeenNames;
use crate::responses::event::{Event, Item, ResponseBody, usage};
use crate::responses::items::{Items, Kind, Progress};
use crate::writing::quoted;
use crate::{Delta, FinishReason, ProviderError, surrogates};
use bobbin_definitions::definitions::opaque::Opaque;

/// Decoder of one response. It is complete with its final event.
pub type Decoder = ResponseDecoder<State>;

/// State of a response so far.
#[derive(Debug, Default)]
pub struct State {
    items: Items,
    calls: usize,
    named: SeenNames,
    end: End,
}

impl Format for State {
    fn read(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), EventError> {
        let event: Event<'_> = bobbin_definitions::json::from_slice(json)?;
        self.take(&event, json, out)
    }

    fn is_last(&mut self, data: &[u8], _out: &mut Vec<Delta>) -> bool {
        // Some servers end all streams with it. An earlier event shows whether the response was complete.
        data == b"[DONE]"
    }

    fn end(&self) -> End {
        self.end
    }
}

impl State {
    fn take(&mut self, event: &Event<'_>, json: &[u8], out: &mut Vec<Delta>) -> Result<(), EventError> {
        match &*event.r#type.0 {
            "response.created" | "response.queued" | "response.in_progress" => {
                let answered = answered(event.response);
                self.named.take(&answered.id.0, &answered.model.0, out);
            }
            "response.output_item.added" => {
                if let Some(raw) = event.item {
                    let item = item(raw.get());
                    let progress = self.items.begin(event.output_index.0, &item)?;
                    match progress.kind {
                        Kind::Call => call(progress, &mut self.calls, &item, out),
                        Kind::Message => phase(progress, &item, out),
                        Kind::Reasoning | Kind::Other => {}
                    }
                }
            }
            "response.output_item.done" => {
                if let Some(raw) = event.item {
                    self.complete(event.output_index.0, raw, out)?;
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.items.of(event, Kind::Message)?.said |= !event.delta.is_empty();
                text(&event.delta, out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.items.of(event, Kind::Reasoning)?.said |= !event.delta.is_empty();
                thought(&event.delta, out);
            }
            "response.reasoning_summary_part.added"
                if event.summary_index.0.is_some_and(|index| index > 0) =>
            {
                out.push(Delta::Reasoning("\n\n".to_owned()));
            }
            "response.function_call_arguments.delta" => {
                arguments(self.items.of(event, Kind::Call)?, &event.delta, out);
            }
            "response.function_call_arguments.done" => {
                let progress = self.items.of(event, Kind::Call)?;
                if !progress.said {
                    arguments(progress, &event.arguments, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                return self.close(&answered(event.response), out);
            }
            "error" => return Err(EventError::Reports(None)),
            "" if event.object.0 == "response" => {
                let whole: ResponseBody<'_> = bobbin_definitions::json::from_slice(json)?;
                return self.close(&whole, out);
            }
            "" if event.error.is_some() => return Err(EventError::Reports(None)),
            _ => {}
        }
        Ok(())
    }

    /// Reads a complete item, and passes on what earlier events lacked.
    fn complete(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        out: &mut Vec<Delta>,
    ) -> Result<(), EventError> {
        // Raw parts were not searched for halves of characters yet.
        let mended = surrogates::marked(raw.get());
        let item = item(mended.as_deref().unwrap_or(raw.get()));
        let progress = self.items.whole(index, &item)?;
        if std::mem::replace(&mut progress.done, true) {
            return Ok(());
        }
        match progress.kind {
            Kind::Message if !progress.said => {
                phase(progress, &item, out);
                for part in &item.content.0 {
                    text(&part.text, out);
                    text(&part.refusal, out);
                }
            }
            Kind::Call => {
                call(progress, &mut self.calls, &item, out);
                if !progress.said {
                    arguments(progress, &item.arguments, out);
                }
            }
            Kind::Reasoning => {
                let pieces = item.summary.0.iter().chain(&item.content.0);
                for part in pieces.filter(|_| !progress.said) {
                    thought(&part.text, out);
                }
                // Reasoning that is neither encrypted nor readable is useless: the server would not find it.
                let told = item.content.0.iter().any(|part| !part.text.is_empty());
                if !item.encrypted_content.is_empty() || told {
                    out.push(Delta::Payload(Opaque::new(raw)));
                }
            }
            Kind::Message | Kind::Other => {}
        }
        Ok(())
    }

    /// Ends the response, which may have arrived whole.
    fn close(&mut self, answered: &ResponseBody<'_>, out: &mut Vec<Delta>) -> Result<(), EventError> {
        self.named.take(&answered.id.0, &answered.model.0, out);
        let status = &*answered.status.0;
        if matches!(status, "failed" | "cancelled" | "queued" | "in_progress") {
            let error = answered.error.filter(|raw| raw.get() != "null");
            return Err(match error {
                Some(raw) => EventError::Reports(Some(raw.get().as_bytes().to_vec())),
                None => EventError::Failed(ProviderError::server(format!(
                    "the provider ended with an answer that is \"{status}\""
                ))),
            });
        }
        for (index, raw) in answered.output.iter().flatten().enumerate() {
            self.complete(Some(index as u64), raw, out)?;
        }
        out.extend(answered.usage.and_then(usage).map(Delta::Usage));
        let reason = answered.incomplete_details.0.as_ref().map_or("", |details| &*details.reason.0);
        self.end = End::Done;
        out.push(Delta::Finish(finish_reason(status, reason)));
        Ok(())
    }
}

/// Stores the phase of a message before its text, because such models need it back.
fn phase(progress: &mut Progress, item: &Item<'_>, out: &mut Vec<Delta>) {
    if item.phase.is_empty() || std::mem::replace(&mut progress.phased, true) {
        return;
    }
    let block = format!(r#"{{"type":"message","phase":{}}}"#, quoted(&item.phase.0));
    out.extend(Opaque::parse(block).map(Delta::Payload));
}

/// Begins a call, unless it has begun.
fn call(progress: &mut Progress, calls: &mut usize, item: &Item<'_>, out: &mut Vec<Delta>) {
    if progress.call.is_some() {
        return;
    }
    let index = *calls;
    progress.call = Some(index);
    *calls += 1;
    let (id, name) = (item.call_id.0.clone().into_owned(), item.name.0.clone().into_owned());
    out.push(Delta::CallStart { index, id, name });
}

fn arguments(progress: &mut Progress, text: &Text<'_>, out: &mut Vec<Delta>) {
    if let Some(index) = progress.call.filter(|_| !text.is_empty()) {
        progress.said = true;
        out.push(Delta::CallArguments { index, text: text.0.clone().into_owned() });
    }
}

/// The response in an event; unreadable parts must not fail the event.
fn answered(raw: Option<&RawValue>) -> ResponseBody<'_> {
    raw.and_then(|raw| bobbin_definitions::json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn item(json: &str) -> Item<'_> {
    bobbin_definitions::json::from_str(json).unwrap_or_default()
}

fn text(text: &Text<'_>, out: &mut Vec<Delta>) {
    if !text.is_empty() {
        out.push(Delta::Text(text.0.clone().into_owned()));
    }
}

fn thought(text: &Text<'_>, out: &mut Vec<Delta>) {
    if !text.is_empty() {
        out.push(Delta::Reasoning(text.0.clone().into_owned()));
    }
}

fn finish_reason(status: &str, reason: &str) -> FinishReason {
    match (status, reason) {
        ("completed", _) => FinishReason::Stop,
        (_, "max_output_tokens" | "max_tokens") => FinishReason::Length,
        (_, "content_filter") => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}
