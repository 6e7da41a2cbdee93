use super::*;
use wasm_encoder::MemoryType;

/// A module with a memory and one function, `run`, of this type and body.
fn module(parameters: &[ValType], body: &[Instruction<'_>]) -> Vec<u8> {
    let mut module = Module::new();
    let mut types = TypeSection::new();
    types.ty().function(parameters.iter().copied(), []);
    module.section(&types);
    let mut functions = FunctionSection::new();
    functions.function(0);
    module.section(&functions);
    let mut memories = wasm_encoder::MemorySection::new();
    memories.memory(MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    module.section(&memories);
    let mut exports = ExportSection::new();
    exports.export("run", ExportKind::Func, 0);
    module.section(&exports);
    let mut code = CodeSection::new();
    let mut function = Function::new([]);
    for instruction in body {
        function.instruction(instruction);
    }
    code.function(&function);
    module.section(&code);
    module.finish()
}

fn metered(bytes: &[u8]) -> (Vec<String>, Vec<(String, u32)>, String) {
    let bytes = meter(Kind::Plain, bytes).unwrap();
    let (mut imports, mut exports, mut code) = (Vec::new(), Vec::new(), String::new());
    for payload in Parser::new(0).parse_all(&bytes) {
        match payload.unwrap() {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.unwrap();
                    imports.push(format!("{}.{}", import.module, import.name));
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.unwrap();
                    exports.push((export.name.to_owned(), export.index));
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader().unwrap() {
                    code += &format!("{:?}\n", operator.unwrap());
                }
                code += "--\n";
            }
            _ => {}
        }
    }
    (imports, exports, code)
}

#[test]
fn a_module_gets_the_imports_the_globals_and_functions_that_moved() {
    let (imports, exports, _) = metered(&module(&[], &[Instruction::End]));
    assert_eq!(imports, ["fuel.tick", "fuel.wait"]);
    assert_eq!(exports, [("run".to_owned(), 2), ("fuel".to_owned(), 0), ("oom".to_owned(), 1)]);
}

#[test]
fn every_loop_burns_fuel_and_calls_for_more() {
    let inner = [
        Instruction::Loop(BlockType::Empty),
        Instruction::Loop(BlockType::Empty),
        Instruction::Br(0),
        Instruction::End,
        Instruction::End,
        Instruction::End,
    ];
    let (_, _, code) = metered(&module(&[], &inner));
    let run = code.split("--").next().unwrap();
    assert_eq!(run.matches("Loop").count(), 2);
    assert_eq!(run.matches("Call { function_index: 3 }").count(), 2, "{run}");
    // The loop's head comes before the meter: a jump back to it passes the meter again.
    assert!(run.find("Loop") < run.find("GlobalGet"));
}

#[test]
fn bulk_operations_burn_fuel_by_their_length_in_a_local_behind_all_others() {
    let fill = [
        Instruction::LocalGet(0),
        Instruction::I32Const(0),
        Instruction::LocalGet(1),
        Instruction::MemoryFill(0),
        Instruction::End,
    ];
    let (_, _, code) = metered(&module(&[ValType::I32, ValType::I32], &fill));
    let run = code.split("--").next().unwrap();
    assert!(run.contains("LocalSet { local_index: 2 }"), "{run}");
    assert!(run.contains("I32ShrU") && run.contains("MemoryFill"));
}

#[test]
fn a_module_that_is_no_quickjs_is_refused_as_one() {
    let error = meter(Kind::QuickJs, &module(&[], &[Instruction::End])).unwrap_err();
    assert!(error.to_string().contains("does not export"), "{error}");
    assert!(meter(Kind::Plain, b"\0asm").is_err());
}

/// The result of `stack::deepened` for a function with these instructions and three locals.
fn deepened(body: &[Instruction<'_>]) -> stack::Deepened {
    let bytes = module(&[], body);
    let mut found = None;
    for payload in Parser::new(0).parse_all(&bytes) {
        if let Payload::CodeSectionEntry(body) = payload.unwrap() {
            found = Some(stack::deepened(&body, 3, 0).unwrap());
        }
    }
    found.unwrap()
}

#[test]
fn frames_in_memory_grow_in_their_prologue_and_epilogues_alike() {
    let enter = [
        Instruction::GlobalGet(0),
        Instruction::I32Const(32),
        Instruction::I32Sub,
        Instruction::LocalTee(0),
        Instruction::GlobalSet(0),
    ];
    let leave = |bytes| {
        [
            Instruction::LocalGet(0),
            Instruction::I32Const(bytes),
            Instruction::I32Add,
            Instruction::GlobalSet(0),
        ]
    };
    let end = [Instruction::End];
    let body = [enter.as_slice(), &leave(32), &leave(32), &end].concat();
    assert_eq!(deepened(&body), stack::Deepened { bytes: 32 + 80, at: vec![1, 6, 10] });
    // A function that releases another size, one without a frame, and one with another global.
    for body in [
        [enter.as_slice(), &leave(48), &end].concat(),
        [leave(32).as_slice(), &end].concat(),
        [[Instruction::GlobalGet(1)].as_slice(), &enter[1..], &leave(32), &end].concat(),
    ] {
        assert_eq!(deepened(&body), stack::Deepened::default());
    }
}
