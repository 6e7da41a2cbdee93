//! `fuel`: makes a wasm module interruptible everywhere.
//!
//! QuickJS calls its interrupt handler only between bytecodes. So it cannot stop a built-in function that
//! never returns to the interpreter (`Array.prototype.join` on a sparse array, a string search, a regular
//! expression). This pass writes a meter into the code itself. Every round of every loop burns one unit of
//! the exported global `fuel`, and a bulk copy burns one per 64 bytes. When the fuel runs out, the module
//! calls its host:
//!
//! - `fuel.tick() -> i32`, an ordinary import, refills `fuel` and returns what comes next: 0 continue, 1 die,
//!   2 wait;
//! - `fuel.wait() -> i32`, during which the host may suspend the instance; it returns 0 continue, 1 die.
//!
//! To die is a trap: no code of the sandbox runs any more, and no handler can catch it.
//!
//! QuickJS gets three more changes. When it runs out of memory it sets the exported global `oom` and dies: a
//! program that caught this error would continue in an engine whose allocations fail at random. For this its
//! allocators are wrapped, and the function that throws the error never returns. The export `drain` runs the
//! pending jobs without a call for each. And its frames in memory are enlarged to match those on the
//! machine's stack, which it cannot see (`stack`).

mod stack;

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, EntityType, ExportKind, ExportSection, Function, FunctionSection,
    GlobalSection, GlobalType, ImportSection, Instruction, Module, TypeSection, ValType,
};
use wasmparser::{ExternalKind, Operator, Parser, Payload, TypeRef, Validator, WasmFeatures};

/// Bytes of a bulk operation per unit, as a shift: about the cost of one round of a loop.
const BYTES_SHIFT: i32 = 6;

/// The kind of the module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any module: only the meter.
    Plain,
    /// QuickJS: also its out-of-memory error and its job queue.
    QuickJs,
}

/// Writes the module at `input`, with its meter, to `out`.
pub(crate) fn run(kind: Kind, input: &Path, out: &Path) -> Result<()> {
    let bytes = std::fs::read(input).with_context(|| input.display().to_string())?;
    let metered = meter(kind, &bytes).with_context(|| format!("fuel for {}", input.display()))?;
    std::fs::write(out, metered).with_context(|| out.display().to_string())
}

/// Adds a meter to `bytes`.
fn meter(kind: Kind, bytes: &[u8]) -> Result<Vec<u8>> {
    let plan = Plan::of(kind, bytes)?;
    let mut module = Module::new();
    let mut meter = Meter { next: 0, globals: Globals::Missing, plan };
    meter.parse_core_module(&mut module, Parser::new(0), bytes).map_err(|error| anyhow!("{error}"))?;
    let metered = module.finish();
    // rustc compiles panics to legacy exceptions, and the platform supports these.
    let features = WasmFeatures::default() | WasmFeatures::LEGACY_EXCEPTIONS;
    Validator::new_with_features(features)
        .validate_all(&metered)
        .context("the rewritten module is not valid")?;
    Ok(metered)
}

/// Indices in the original module.
struct Plan {
    types: u32,
    imported_functions: u32,
    functions: u32,
    globals: u32,
    /// The number of parameters of each defined function.
    parameters: Vec<u32>,
    engine: Option<Engine>,
}

/// Functions of QuickJS, by their original indices.
#[derive(Clone, Copy)]
struct Engine {
    /// They return 0 if there is no memory.
    allocators: [Allocator; 3],
    throws_out_of_memory: u32,
    job_is_pending: u32,
    executes_job: u32,
    /// A global.
    stack_pointer: u32,
}

/// An allocator, and the parameter that is 0 if nothing is to be allocated.
#[derive(Clone, Copy)]
struct Allocator {
    function: u32,
    kind: u32,
    parameters: u32,
    size: u32,
}

impl Plan {
    fn of(kind: Kind, bytes: &[u8]) -> Result<Plan> {
        let mut parameters_of_type = Vec::new();
        let mut plan = Plan {
            types: 0,
            imported_functions: 0,
            functions: 0,
            globals: 0,
            parameters: Vec::new(),
            engine: None,
        };
        let mut exports = Vec::new();
        let mut stack_pointer = None;
        let mut kinds = Vec::new();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::TypeSection(section) => {
                    for group in section.into_iter_err_on_gc_types() {
                        parameters_of_type.push(u32::try_from(group?.params().len())?);
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        match import?.ty {
                            TypeRef::Func(_) => plan.imported_functions += 1,
                            TypeRef::Global(_) => plan.globals += 1,
                            _ => {}
                        }
                    }
                }
                Payload::FunctionSection(section) => {
                    for index in section {
                        let index = index?;
                        kinds.push(index);
                        let index = usize::try_from(index)?;
                        plan.parameters
                            .push(*parameters_of_type.get(index).context("a function without a type")?);
                    }
                }
                Payload::GlobalSection(section) => plan.globals += section.count(),
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        if export.kind == ExternalKind::Func {
                            exports.push((export.name.to_owned(), export.index));
                        } else if export.name == "__stack_pointer" {
                            stack_pointer = Some(export.index);
                        }
                    }
                }
                _ => {}
            }
        }
        plan.types = u32::try_from(parameters_of_type.len())?;
        plan.functions = u32::try_from(plan.parameters.len())?;
        if plan.functions == 0 || exports.is_empty() {
            bail!("the module has no functions to call");
        }
        if kind == Kind::QuickJs {
            let find = |wanted: &str| {
                let found = exports.iter().find(|(name, _)| name == wanted);
                found.map(|(_, index)| *index).with_context(|| format!("the module does not export {wanted}"))
            };
            let allocator = |name: &str, size: u32| -> Result<Allocator> {
                let function = find(name)?;
                let defined =
                    function.checked_sub(plan.imported_functions).context("an allocator is imported")?;
                let kind = *kinds.get(usize::try_from(defined)?).context("an allocator is not defined")?;
                let parameters =
                    *parameters_of_type.get(usize::try_from(kind)?).context("an allocator has no type")?;
                Ok(Allocator { function, kind, parameters, size })
            };
            plan.engine = Some(Engine {
                allocators: [
                    allocator("js_malloc_rt", 1)?,
                    allocator("js_calloc_rt", 2)?,
                    allocator("js_realloc_rt", 2)?,
                ],
                throws_out_of_memory: find("JS_ThrowOutOfMemory")?,
                job_is_pending: find("qjs_is_job_pending")?,
                executes_job: find("qjs_execute_pending_job")?,
                stack_pointer: stack_pointer.context("the module does not export its stack pointer")?,
            });
        }
        Ok(plan)
    }

    // Additions come last in their index space, except imported functions, which shift the defined ones.

    /// The type `() -> i32`.
    fn answer_type(&self) -> u32 {
        self.types
    }
    /// The type `() -> ()`.
    fn silent_type(&self) -> u32 {
        self.types + 1
    }
    fn tick(&self) -> u32 {
        self.imported_functions
    }
    fn wait(&self) -> u32 {
        self.imported_functions + 1
    }
    fn moved(&self, function: u32) -> u32 {
        if function < self.imported_functions { function } else { function + 2 }
    }
    /// The function to call when the fuel has run out.
    fn refuel(&self) -> u32 {
        self.imported_functions + 2 + self.functions
    }
    fn drain(&self) -> u32 {
        self.refuel() + 1
    }
    /// The wrapper that all other functions call instead of an allocator.
    fn wrapper(&self, function: u32) -> Option<u32> {
        let at = self.engine?.allocators.iter().position(|allocator| allocator.function == function)?;
        u32::try_from(at).ok().map(|at| self.drain() + 1 + at)
    }
    fn fuel(&self) -> u32 {
        self.globals
    }
    fn oom(&self) -> u32 {
        self.globals + 1
    }
}

/// Whether the section of globals was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Globals {
    Missing,
    Written,
}

struct Meter {
    plan: Plan,
    globals: Globals,
    /// The index of the next function body, counted from 0 among defined functions.
    next: u32,
}

type Outcome = Result<(), reencode::Error>;

impl Reencode for Meter {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, reencode::Error> {
        Ok(self.plan.wrapper(function).unwrap_or_else(|| self.plan.moved(function)))
    }

    // Drop the names of functions.
    fn parse_custom_section(&mut self, _: &mut Module, _: wasmparser::CustomSectionReader<'_>) -> Outcome {
        Ok(())
    }

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Outcome {
        utils::parse_type_section(self, types, section)?;
        types.ty().function([], [ValType::I32]);
        types.ty().function([], []);
        Ok(())
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Outcome {
        utils::parse_import_section(self, imports, section)?;
        self.import(imports);
        Ok(())
    }

    fn intersperse_section_hook(
        &mut self,
        module: &mut Module,
        after: Option<wasm_encoder::SectionId>,
        before: Option<wasm_encoder::SectionId>,
    ) -> Outcome {
        use wasm_encoder::SectionId::{Code, Data, DataCount, Element, Export, Import, Start, Type};
        // A module without imports has no import section yet.
        if after == Some(Type) && before != Some(Import) {
            let mut imports = ImportSection::new();
            self.import(&mut imports);
            module.section(&imports);
        }
        // A module without globals has no global section either.
        let past_globals = matches!(before, Some(Export | Start | Element | DataCount | Code | Data));
        if past_globals && self.globals == Globals::Missing {
            let mut globals = GlobalSection::new();
            self.add_globals(&mut globals);
            module.section(&globals);
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Outcome {
        utils::parse_function_section(self, functions, section)?;
        functions.function(self.plan.silent_type());
        if let Some(engine) = self.plan.engine {
            functions.function(self.plan.answer_type());
            for allocator in engine.allocators {
                functions.function(allocator.kind);
            }
        }
        Ok(())
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: wasmparser::GlobalSectionReader<'_>,
    ) -> Outcome {
        utils::parse_global_section(self, globals, section)?;
        self.add_globals(globals);
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Outcome {
        utils::parse_export_section(self, exports, section)?;
        exports.export("fuel", ExportKind::Global, self.plan.fuel());
        exports.export("oom", ExportKind::Global, self.plan.oom());
        if self.plan.engine.is_some() {
            exports.export("drain", ExportKind::Func, self.plan.drain());
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: wasmparser::CodeSectionReader<'_>,
    ) -> Outcome {
        utils::parse_code_section(self, code, section)?;
        code.function(&self.refuel_body());
        if let Some(engine) = self.plan.engine {
            code.function(&self.drain_body(engine));
            for allocator in engine.allocators {
                code.function(&self.wrapper_body(allocator));
            }
        }
        Ok(())
    }

    fn parse_function_body(&mut self, code: &mut CodeSection, body: wasmparser::FunctionBody<'_>) -> Outcome {
        let defined = self.next;
        self.next += 1;
        let mut locals = Vec::new();
        let mut count =
            usize::try_from(defined).ok().and_then(|at| self.plan.parameters.get(at)).copied().unwrap_or(0);
        for local in body.get_locals_reader()? {
            let (number, kind) = local?;
            count += number;
            locals.push((number, self.val_type(kind)?));
        }
        // Holds the length of a bulk operation.
        locals.push((1, ValType::I32));
        let length = count;

        let mut function = Function::new(locals);
        let defined = defined + self.plan.imported_functions;
        if self.plan.engine.is_some_and(|engine| engine.throws_out_of_memory == defined) {
            let oom = self.plan.oom();
            emit(
                &mut function,
                [Instruction::I32Const(1), Instruction::GlobalSet(oom), Instruction::Unreachable],
            );
        }
        let deepened = match self.plan.engine {
            Some(engine) => stack::deepened(&body, length, engine.stack_pointer)
                .map_err(|_| reencode::Error::InvalidConstExpr)?,
            None => stack::Deepened::default(),
        };
        for (at, operator) in body.get_operators_reader()?.into_iter().enumerate() {
            let mut operator = operator?;
            if deepened.at.contains(&at) {
                operator = Operator::I32Const { value: deepened.bytes };
            }
            let cost = Cost::of(&operator);
            if cost == Cost::Length {
                let fuel = self.plan.fuel();
                emit(
                    &mut function,
                    [
                        Instruction::LocalSet(length),
                        Instruction::GlobalGet(fuel),
                        Instruction::LocalGet(length),
                        Instruction::I32Const(BYTES_SHIFT),
                        Instruction::I32ShrU,
                        Instruction::I32Sub,
                        Instruction::GlobalSet(fuel),
                        Instruction::LocalGet(length),
                    ],
                );
            }
            function.instruction(&self.instruction(operator)?);
            if cost == Cost::Round {
                self.burn(&mut function);
            }
        }
        code.function(&function);
        Ok(())
    }
}

/// The cost of an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cost {
    Nothing,
    /// One unit each time it is reached: the head of a loop.
    Round,
    /// By the length on top of the stack.
    Length,
}

impl Cost {
    fn of(operator: &Operator<'_>) -> Cost {
        match operator {
            Operator::Loop { .. } => Cost::Round,
            Operator::MemoryCopy { .. } | Operator::MemoryFill { .. } | Operator::MemoryInit { .. } => {
                Cost::Length
            }
            _ => Cost::Nothing,
        }
    }
}

impl Meter {
    fn add_globals(&mut self, globals: &mut GlobalSection) {
        self.globals = Globals::Written;
        let counter = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        // Enough for what runs before the host sets it.
        globals.global(counter, &ConstExpr::i32_const(i32::MAX));
        globals.global(counter, &ConstExpr::i32_const(0));
    }

    fn import(&self, imports: &mut ImportSection) {
        for name in ["tick", "wait"] {
            imports.import("fuel", name, EntityType::Function(self.plan.answer_type()));
        }
    }

    /// Takes one unit; calls for more if there is none.
    fn burn(&self, function: &mut Function) {
        let fuel = self.plan.fuel();
        emit(
            function,
            [
                Instruction::GlobalGet(fuel),
                Instruction::I32Const(1),
                Instruction::I32Sub,
                Instruction::GlobalSet(fuel),
                Instruction::GlobalGet(fuel),
                Instruction::I32Const(0),
                Instruction::I32LtS,
                Instruction::If(BlockType::Empty),
                Instruction::Call(self.plan.refuel()),
                Instruction::End,
            ],
        );
    }

    /// Calls the host, and waits or dies as it returns.
    fn refuel_body(&self) -> Function {
        let mut function = Function::new([(1, ValType::I32)]);
        emit(
            &mut function,
            [
                Instruction::Call(self.plan.tick()),
                Instruction::LocalTee(0),
                Instruction::I32Const(2),
                Instruction::I32Eq,
                Instruction::If(BlockType::Empty),
                Instruction::Call(self.plan.wait()),
                Instruction::LocalSet(0),
                Instruction::End,
                Instruction::LocalGet(0),
                Instruction::If(BlockType::Empty),
                Instruction::Unreachable,
                Instruction::End,
                Instruction::End,
            ],
        );
        function
    }

    /// Calls the allocator, and dies if it returns 0.
    fn wrapper_body(&self, allocator: Allocator) -> Function {
        let mut function = Function::new([(1, ValType::I32)]);
        let result = allocator.parameters;
        for parameter in 0..allocator.parameters {
            emit(&mut function, [Instruction::LocalGet(parameter)]);
        }
        emit(
            &mut function,
            [
                Instruction::Call(self.plan.moved(allocator.function)),
                Instruction::LocalTee(result),
                Instruction::I32Eqz,
                Instruction::LocalGet(allocator.size),
                Instruction::I32Const(0),
                Instruction::I32Ne,
                Instruction::I32And,
                Instruction::If(BlockType::Empty),
                Instruction::I32Const(1),
                Instruction::GlobalSet(self.plan.oom()),
                Instruction::Unreachable,
                Instruction::End,
                Instruction::LocalGet(result),
                Instruction::End,
            ],
        );
        function
    }

    /// Runs all jobs; a negative result is that of a job that threw.
    fn drain_body(&self, engine: Engine) -> Function {
        let mut function = Function::new([(1, ValType::I32)]);
        emit(&mut function, [Instruction::Loop(BlockType::Empty)]);
        self.burn(&mut function);
        emit(
            &mut function,
            [
                Instruction::Call(self.plan.moved(engine.job_is_pending)),
                Instruction::If(BlockType::Empty),
                Instruction::Call(self.plan.moved(engine.executes_job)),
                Instruction::LocalTee(0),
                Instruction::I32Const(0),
                Instruction::I32GeS,
                Instruction::BrIf(1),
                Instruction::LocalGet(0),
                Instruction::Return,
                Instruction::End,
                Instruction::End,
                Instruction::I32Const(0),
                Instruction::End,
            ],
        );
        function
    }
}

fn emit<const N: usize>(function: &mut Function, instructions: [Instruction<'_>; N]) {
    for instruction in &instructions {
        function.instruction(instruction);
    }
}

#[cfg(test)]
mod tests;
