//! Generates a tree of sessions of any size, with its expected totals.
//!
//! Deterministic, and with everything that makes counters wrong: several lines per
//! message with differing usage, resumed and forked copies, copies cut in the middle of a
//! message, ids used again for other messages, subagents with files of their own and
//! subagents that only `progress` lines show, torn lines, recorded costs, unknown models, ids and usage
//! inside tool inputs, a heavy tail of line sizes, English, code and Chinese.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Tokens, and cost in billionths of a dollar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExpectedSum {
    pub input: u64,
    pub output: u64,
    pub cache_write_5m: u64,
    pub cache_write_1h: u64,
    pub cache_read: u64,
    pub searches: u64,
    pub messages: u64,
    pub nano_usd: u64,
    pub unpriced: BTreeSet<String>,
}

impl ExpectedSum {
    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_write_5m += other.cache_write_5m;
        self.cache_write_1h += other.cache_write_1h;
        self.cache_read += other.cache_read;
        self.searches += other.searches;
        self.messages += other.messages;
        self.nano_usd += other.nano_usd;
        self.unpriced.extend(other.unpriced.iter().cloned());
    }

    /// One of `n` equal shares; the first one also gets the remainder.
    fn share(&self, parts: u64, is_first: bool) -> Self {
        let share = |n: u64| n / parts + if is_first { n % parts } else { 0 };
        Self {
            input: share(self.input),
            output: share(self.output),
            cache_write_5m: share(self.cache_write_5m),
            cache_write_1h: share(self.cache_write_1h),
            cache_read: share(self.cache_read),
            searches: share(self.searches),
            messages: share(self.messages),
            nano_usd: share(self.nano_usd),
            unpriced: self.unpriced.clone(),
        }
    }
}

/// Expected usage of a generated tree. Days are in UTC.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExpectedUsage {
    pub total: ExpectedSum,
    pub by_day: BTreeMap<String, ExpectedSum>,
    pub by_session: BTreeMap<String, ExpectedSum>,
    pub by_model: BTreeMap<String, ExpectedSum>,
    pub by_project: BTreeMap<String, ExpectedSum>,
    pub by_block: BTreeMap<String, ExpectedSum>,
    pub by_tool: BTreeMap<String, ExpectedSum>,
    pub by_agent: BTreeMap<String, ExpectedSum>,
    pub by_turn: BTreeMap<String, ExpectedSum>,
    pub bytes: u64,
    pub files: u64,
}

/// Writes at least `bytes` of sessions under `dir/projects` and returns their expected usage.
pub fn generate_tree(dir: &Path, seed: u64, bytes: u64) -> io::Result<ExpectedUsage> {
    let mut maker = Generator { random_state: seed | 1, ..Generator::default() };
    let mut n = 0;
    while maker.expected.bytes < bytes {
        n += 1;
        maker.write_session(dir, n)?;
    }
    maker.sum_blocks();
    Ok(maker.expected)
}

/// Deletes every third session file of a tree, as a program that cleans up does, and
/// returns the deleted files.
pub fn delete_every_third(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_session = |path: &Path| path.extension().is_some_and(|ext| ext == "jsonl");
    let files = crate::files_under(&dir.join("projects"), is_session);
    let gone: Vec<PathBuf> = files.into_iter().skip(1).step_by(3).collect();
    gone.iter().try_for_each(fs::remove_file)?;
    Ok(gone)
}

#[derive(Default)]
struct Generator {
    random_state: u64,
    expected: ExpectedUsage,
    serial: u64,
    /// Messages of this session whose ids other sessions use too.
    reused_ids: u64,
    /// The messages of this session.
    messages: Vec<GeneratedMessage>,
    /// When each message was sent, and what it used.
    usage_by_time: Vec<(u64, ExpectedSum)>,
}

/// A message of the current session.
struct GeneratedMessage {
    usage: GeneratedUsage,
    time: u64,
    tools: Vec<&'static str>,
    is_from_subagent: bool,
    turn: u64,
    /// Its first line in the session's own file; `None` if it has a file of its own.
    line: Option<usize>,
}

/// How the lines of a subagent are kept.
#[derive(Clone, Copy, PartialEq)]
enum SubagentStorage {
    /// No subagent.
    None,
    /// In a file of its own.
    File,
    /// In a file, and repeated in `progress` lines.
    Both,
    /// In `progress` lines only, as older versions did it.
    Progress,
}

const SUBAGENT_TYPE: &str = "Explore";

/// Name, and input, output, 5m, 1h and read rates in billionths of a dollar a token.
const MODEL_RATES: [(&str, [u64; 5]); 3] = [
    ("claude-opus-5-5", [4000, 20000, 5000, 8000, 200]),
    ("claude-sonnet-4-5-20250929", [3000, 15000, 3750, 6000, 300]),
    ("claude-haiku-4-5", [1000, 5000, 1250, 2000, 100]),
];
/// What sonnet costs when the whole prompt is over 200,000 tokens.
const SONNET_LONG_CONTEXT_RATES: [u64; 5] = [6000, 22500, 7500, 12000, 600];

const CHINESE_CHARACTERS: [char; 60] = [
    '的', '一', '是', '在', '不', '了', '有', '和', '人', '这', '中', '大', '为', '上', '个', '国', '我', '以', '要',
    '他', '时', '来', '用', '们', '生', '到', '作', '地', '于', '出', '就', '分', '对', '成', '会', '可', '主', '发',
    '年', '动', '同', '工', '也', '能', '下', '过', '子', '说', '产', '种', '面', '而', '方', '后', '多', '定', '行',
    '学', '法', '所',
];

/// A word for a number.
fn pseudo_word(mut number: u64) -> String {
    const PARTS: [&str; 16] =
        ["ti", "de", "har", "bour", "mo", "on", "cur", "rent", "wa", "ve", "sta", "tion", "ley", "ra", "kel", "no"];
    let mut word = String::new();
    loop {
        word.push_str(PARTS[(number % 16) as usize]);
        number /= 16;
        if number == 0 {
            return word;
        }
    }
}

/// Usage of a message.
struct GeneratedUsage {
    model: &'static str,
    is_priced: bool,
    counts: [u64; 5],
    is_cache_unsplit: bool,
    searches: u64,
    recorded_nano_usd: Option<u64>,
}

impl Generator {
    fn random_below(&mut self, below: u64) -> u64 {
        self.random_state ^= self.random_state << 13;
        self.random_state ^= self.random_state >> 7;
        self.random_state ^= self.random_state << 17;
        self.random_state % below.max(1)
    }

    fn next_uuid(&mut self) -> String {
        self.serial += 1;
        format!(
            "{:08x}-{:04x}-4{:03x}-8000-{:012x}",
            self.random_below(1 << 32),
            self.random_below(1 << 16),
            self.random_below(1 << 12),
            self.serial
        )
    }

    /// A text of the user or the model; mostly short.
    fn short_text(&mut self) -> String {
        let times = match self.random_below(100) {
            0..10 => 10 + self.random_below(30),
            _ => 1 + self.random_below(5),
        };
        self.random_text(times)
    }

    /// Output of a tool: mostly long, sometimes very long. With these sizes
    /// half of all lines are below 1 kB, one in a hundred is over 25 kB, and a fifth of
    /// all bytes are in lines that cost something, as in published sessions.
    fn long_text(&mut self) -> String {
        let times = match self.random_below(100) {
            0..3 => 300 + self.random_below(1600),
            3..22 => 40 + self.random_below(100),
            _ => 1 + self.random_below(24),
        };
        self.random_text(times)
    }

    fn random_text(&mut self, phrases: u64) -> String {
        let mut out = String::new();
        let kind = self.random_below(8);
        for _ in 0..phrases {
            self.push_phrase(kind, &mut out);
        }
        out
    }

    /// A phrase, escaped for JSON: prose, code, Chinese, or the output of a program.
    fn push_phrase(&mut self, kind: u64, out: &mut String) {
        match kind {
            0..3 => {
                for _ in 0..6 + self.random_below(9) {
                    out.push_str(&self.word());
                    out.push(' ');
                }
                out.push_str(". ");
            }
            3 => {
                for _ in 0..8 + self.random_below(12) {
                    out.push(CHINESE_CHARACTERS[self.skewed_below(CHINESE_CHARACTERS.len())]);
                }
                out.push('，');
            }
            4 => {
                let path = format!("src/{}/{}.rs", self.word(), self.word());
                let line = self.random_below(900);
                out.push_str(&format!(
                    "error[E0308]: mismatched types\\n   --> {path}:{line}:9\\n    |\\n{line:>4} |             "
                ));
                out.push_str(&format!(
                    "{}(...)\\n    |             ^^^^^^^^^^^^ expected `{}`\\n",
                    self.word(),
                    self.word()
                ));
            }
            5 => out.push_str(&format!(
                "\\u001b[32mok\\u001b[0m {} {} \\\"{}\\\"\\n",
                self.word(),
                self.random_below(99),
                self.word()
            )),
            _ => {
                let [name, part, snake] = [self.identifier(), self.identifier(), self.word()];
                let indent = 4 * (1 + self.random_below(5)) as usize;
                out.push_str(&format!("{:indent$}let {snake}_id = &self.{name}({part}.{snake}) => {{}};\\n", ""));
            }
        }
    }

    /// One of some thousand names, as a code base has them.
    fn identifier(&mut self) -> String {
        let name = self.skewed_below(3000) as u64;
        let (first, second) = (pseudo_word(name * 31 % 4096), pseudo_word(name * 17 % 509));
        let (head, tail) = second.split_at(1);
        format!("{first}{}{tail}", head.to_uppercase())
    }

    /// One of some thousand words, a few of them far more often than the rest.
    fn word(&mut self) -> String {
        let number = self.skewed_below(1 << 12) as u64;
        // Twice: common words are far more common than rare ones.
        pseudo_word(if self.random_below(2) == 0 { number / 16 } else { number })
    }

    /// A number below a limit, low ones far more often.
    fn skewed_below(&mut self, limit: usize) -> usize {
        let (a, b) = (self.random_below(1 << 20), self.random_below(1 << 20));
        (((a * b) >> 20) as usize * limit) >> 20
    }

    fn write_session(&mut self, dir: &Path, n: u64) -> io::Result<()> {
        let project = format!("-home-dev-project-{}", n % 7);
        let id = self.next_uuid();
        self.reused_ids = 0;
        let folder = dir.join("projects").join(&project);
        let mut clock = 1_790_000_000 + n * 3_700 + self.random_below(3_000);
        let (mut main, mut side) = (String::new(), String::new());
        let mut parent = String::from("null");
        let envelope = |id: &str| {
            format!(
                r#""isSidechain":false,"userType":"external","cwd":"/home/dev/project","sessionId":"{id}","version":"2.1.300","gitBranch":"main""#
            )
        };
        // Most sessions are short, some last for days, as real ones.
        let long = match self.random_below(40) {
            0 => 24,
            1..5 => 6,
            _ => 1,
        };
        let side_kept = match self.random_below(9) {
            0 => SubagentStorage::File,
            1 => SubagentStorage::Both,
            2 => SubagentStorage::Progress,
            _ => SubagentStorage::None,
        };
        let call = format!("toolu_agent_{id}");
        let (mut line, mut counted) = (0, 0);
        for turn in 0..(3 + self.random_below(8)) * long {
            let (uuid, words) = (self.next_uuid(), self.short_text());
            main.push_str(&format!(
                r#"{{"parentUuid":{parent},{},"type":"user","message":{{"role":"user","content":"{words}"}},"uuid":"{uuid}","timestamp":"{}"}}"#,
                envelope(&id), format_time(clock)
            ));
            main.push('\n');
            parent = format!("\"{uuid}\"");
            for step in 0..1 + self.random_below(6) {
                clock += 1 + self.random_below(40);
                let starts = (side_kept != SubagentStorage::None && turn == 0 && step == 0).then_some(&*call);
                let in_side = side_kept != SubagentStorage::None && starts.is_none() && self.random_below(8) == 0;
                let (lines, last) = self.message_lines(&id, clock, &parent, starts);
                line += main[counted..].bytes().filter(|byte| *byte == b'\n').count();
                counted = main.len();
                if in_side && matches!(side_kept, SubagentStorage::File | SubagentStorage::Both) {
                    side.push_str(&lines);
                }
                if in_side && matches!(side_kept, SubagentStorage::Both | SubagentStorage::Progress) {
                    for repeated in lines.lines() {
                        let uuid = self.next_uuid();
                        main.push_str(&format!(
                            r#"{{"parentUuid":{parent},{},"type":"progress","data":{{"message":{repeated},"type":"agent_progress","prompt":"Look","agentId":"a1"}},"parentToolUseID":"{call}","uuid":"{uuid}","timestamp":"{}"}}"#,
                            envelope(&id), format_time(clock)
                        ));
                        main.push('\n');
                        parent = format!("\"{uuid}\"");
                    }
                }
                if !in_side {
                    main.push_str(&lines);
                    parent = last;
                }
                if let Some(made) = self.messages.last_mut() {
                    made.is_from_subagent = in_side;
                    // A subagent's work belongs to the turn that started it.
                    made.turn = if in_side { 1 } else { turn + 1 };
                    made.line = (!in_side || side_kept == SubagentStorage::Progress).then_some(line);
                }
            }
            if turn == 2 && self.random_below(5) == 0 {
                // A line torn by a crash, set aside.
                main.push_str("{\"type\":\"assistant\",\"message\":{\"id\":\"msg_torn\",\"usage\":{\"output_to\n");
            }
            clock += 30 + self.random_below(4_000);
        }
        self.write_file(&folder.join(format!("{id}.jsonl")), &main)?;
        if !side.is_empty() {
            let side = side.replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"a1\"");
            let folder = folder.join(&id).join("subagents");
            self.write_file(&folder.join("agent-a1.jsonl"), &side)?;
            fs::write(
                folder.join("agent-a1.meta.json"),
                format!(r#"{{"agentType":"{SUBAGENT_TYPE}","toolUseId":"{call}"}}"#),
            )?;
        }
        let lines = main.lines().count() as u64;
        // A copy that begins with the same line is the earlier one by its name.
        let cut = if self.random_below(6) == 0 { 1 + self.random_below(lines) as usize } else { 0 };
        let partial = self.next_uuid();
        if cut > 0 {
            let copied: String = main.split_inclusive('\n').take(cut).collect();
            self.write_file(&folder.join(format!("{partial}.jsonl")), &copied.replace(&id, &partial))?;
        }
        for made in std::mem::take(&mut self.messages) {
            let is_copied = made.line.is_some_and(|line| line < cut);
            let owner = if is_copied { id.as_str().min(&partial) } else { &id };
            self.add_expected(&made, owner, &project);
        }
        match self.random_below(6) {
            // A fork copies every line with its id; a resume of old copies them with new ids.
            0 => {
                let fork = self.next_uuid();
                let begin = format!(
                    "{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"timestamp\":\"{}\",\"sessionId\":\"{fork}\"}}\n",
                    format_time(clock + 9)
                );
                self.write_file(&folder.join(format!("{fork}.jsonl")), &(begin + &main.replace(&id, &fork)))
            }
            1 => {
                let resumed = self.next_uuid();
                let begin = format!(
                    "{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"timestamp\":\"{}\",\"sessionId\":\"{resumed}\"}}\n",
                    format_time(clock + 9)
                );
                let copy = main
                    .replace(&id, &resumed)
                    .replace("\"uuid\":\"", "\"uuid\":\"f")
                    .replace("\"parentUuid\":\"", "\"parentUuid\":\"f");
                self.write_file(&folder.join(format!("{resumed}.jsonl")), &(begin + &copy))
            }
            _ => Ok(()),
        }
    }

    /// The lines of one API message, and the id of the last of them. `starts` is a call
    /// that starts a subagent.
    fn message_lines(&mut self, session: &str, clock: u64, parent: &str, starts: Option<&str>) -> (String, String) {
        let pick = self.random_below(100);
        let (model, known) = match pick {
            0..2 => ("glm-9-turbo", false),
            2..60 => (MODEL_RATES[0].0, true),
            60..80 => (MODEL_RATES[1].0, true),
            _ => (MODEL_RATES[2].0, true),
        };
        // Gateways use ids again: every session has its own message of this name.
        let id = if pick % 10 == 7 {
            self.reused_ids += 1;
            format!("msg_again_{}", self.reused_ids)
        } else {
            format!("msg_{}", self.next_uuid())
        };
        let request = if pick % 10 == 3 { String::new() } else { format!("req_{}", self.next_uuid()) };
        let unsplit = self.random_below(5) == 0;
        let long = self.random_below(12) == 0;
        let counts = [
            self.random_below(900),
            1 + self.random_below(3000),
            self.random_below(9000),
            if unsplit { 0 } else { self.random_below(3000) },
            if long { 200_000 + self.random_below(90_000) } else { self.random_below(90_000) },
        ];
        let searches = u64::from(self.random_below(30) == 0);
        let recorded = (self.random_below(40) == 0).then(|| 1_000 * self.random_below(90_000));
        let searches = if starts.is_some() { 0 } else { searches };
        let spent = GeneratedUsage {
            model,
            is_priced: known || recorded.is_some(),
            counts,
            is_cache_unsplit: unsplit,
            searches,
            recorded_nano_usd: recorded,
        };
        let mut lines = String::new();
        let mut parent = parent.to_owned();
        let blocks = 1 + self.random_below(3);
        for block in 0..blocks {
            let uuid = self.next_uuid();
            // Only the last line says it all, or all of them do.
            let output = if block + 1 == blocks { counts[1] } else { counts[1].min(1 + self.random_below(counts[1])) };
            let content = match (block, searches) {
                (0, _) if let Some(call) = starts => {
                    format!(
                        r#"{{"type":"tool_use","id":"{call}","name":"Agent","input":{{"subagent_type":"{SUBAGENT_TYPE}","prompt":"Look"}}}}"#
                    )
                }
                (0, 1) => {
                    format!(r#"{{"type":"tool_use","id":"toolu_{id}","name":"WebSearch","input":{{"query":"tide"}}}}"#)
                }
                (1, _) => format!(
                    r#"{{"type":"tool_use","id":"toolu_{id}_1","name":"Bash","input":{{"id":null,"model":null,"content":"{{\"usage\":{{\"output_tokens\":99}}}}","usage":{{"output_tokens":77}}}}}}"#
                ),
                _ => format!(r#"{{"type":"text","text":"{}"}}"#, self.short_text()),
            };
            let split = if unsplit {
                String::new()
            } else {
                format!(
                    r#","cache_creation":{{"ephemeral_5m_input_tokens":{},"ephemeral_1h_input_tokens":{}}}"#,
                    counts[2], counts[3]
                )
            };
            let usage = format!(
                r#"{{"input_tokens":{},"output_tokens":{output},"cache_creation_input_tokens":{},"cache_read_input_tokens":{}{split},"service_tier":"standard"}}"#,
                counts[0],
                counts[2] + counts[3],
                counts[4]
            );
            let cost = recorded.map(|nano| format!(r#","costUSD":{}"#, nano as f64 / 1e9)).unwrap_or_default();
            lines.push_str(&format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/home/dev/project","sessionId":"{session}","version":"2.1.300","message":{{"model":"{model}","id":"{id}","type":"message","role":"assistant","content":[{content}],"stop_reason":null,"usage":{usage}}},"requestId":"{request}"{cost},"type":"assistant","uuid":"{uuid}","timestamp":"{}"}}"#,
                format_time(clock + block / 2)
            ));
            lines.push('\n');
            parent = format!("\"{uuid}\"");
        }
        // Tool output is in the file twice: as the result for the model and as structured output.
        for _ in 1..blocks.min(2) {
            let (uuid, output) = (self.next_uuid(), self.long_text());
            lines.push_str(&format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/home/dev/project","sessionId":"{session}","version":"2.1.300","type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{id}_1","type":"tool_result","content":"{output}"}}]}},"uuid":"{uuid}","timestamp":"{}","toolUseResult":{{"stdout":"{output}","stderr":"","interrupted":false}}}}"#,
                format_time(clock + 1)
            ));
            lines.push('\n');
            parent = format!("\"{uuid}\"");
        }
        if searches == 1 {
            let uuid = self.next_uuid();
            lines.push_str(&format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"{session}","type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{id}","content":"{}"}}]}},"uuid":"{uuid}","timestamp":"{}"}}"#,
                self.short_text(), format_time(clock + 2)
            ));
            lines.push('\n');
            parent = format!("\"{uuid}\"");
        }
        let mut tools = Vec::new();
        tools.extend(starts.map(|_| "Agent"));
        tools.extend((searches == 1).then_some("WebSearch"));
        tools.extend((blocks > 1).then_some("Bash"));
        self.messages.push(GeneratedMessage {
            usage: spent,
            time: clock,
            tools,
            is_from_subagent: false,
            turn: 0,
            line: None,
        });
        (lines, parent)
    }

    /// Credits a session with a message.
    fn add_expected(&mut self, made: &GeneratedMessage, session: &str, project: &str) {
        let GeneratedMessage { usage: spent, time: clock, .. } = made;
        let [input, output, write_5m, write_1h, read] = spent.counts;
        let prompt = input + write_5m + write_1h + read;
        let rates = MODEL_RATES.iter().find(|(name, _)| *name == spent.model).map(|(name, rates)| {
            if name.contains("sonnet") && prompt > 200_000 { &SONNET_LONG_CONTEXT_RATES } else { rates }
        });
        // Without a split all writes are priced as five-minute ones.
        debug_assert!(!spent.is_cache_unsplit || write_1h == 0);
        let nano = match (spent.recorded_nano_usd, rates) {
            (Some(recorded), _) => recorded,
            (None, Some(rates)) => {
                spent.counts.iter().zip(rates).map(|(n, rate)| n * rate).sum::<u64>() + spent.searches * 10_000_000
            }
            (None, None) => 0,
        };
        let unpriced = (!spent.is_priced).then(|| spent.model.to_owned());
        let sum = ExpectedSum {
            input,
            output,
            cache_write_5m: write_5m,
            cache_write_1h: write_1h,
            cache_read: read,
            searches: spent.searches,
            messages: 1,
            nano_usd: nano,
            unpriced: unpriced.into_iter().collect(),
        };
        let ExpectedUsage { total, by_day, by_session, by_model, by_project, by_tool, by_agent, by_turn, .. } =
            &mut self.expected;
        let agent = if made.is_from_subagent { SUBAGENT_TYPE } else { "main" };
        let sums = [
            total,
            by_day.entry(format_time(*clock)[..10].to_owned()).or_default(),
            by_session.entry(session.to_owned()).or_default(),
            by_model.entry(spent.model.to_owned()).or_default(),
            by_project.entry(project.to_owned()).or_default(),
            by_agent.entry(agent.to_owned()).or_default(),
            by_turn.entry(format!("{session}:{}", made.turn)).or_default(),
        ];
        for each in sums {
            each.add(&sum);
        }
        let tools = if made.tools.is_empty() { &["(none)"][..] } else { &made.tools };
        for (n, tool) in tools.iter().enumerate() {
            by_tool.entry((*tool).to_owned()).or_default().add(&sum.share(tools.len() as u64, n == 0));
        }
        self.usage_by_time.push((*clock, sum));
    }

    /// Five-hour blocks: a block begins at the full hour of the first message after the
    /// last one ended, or after five hours without a message.
    fn sum_blocks(&mut self) {
        const HOURS: u64 = 5 * 3600;
        self.usage_by_time.sort_by_key(|(clock, _)| *clock);
        let (mut start, mut before) = (0, 0);
        for (clock, sum) in &self.usage_by_time {
            if clock - start >= HOURS || clock - before >= HOURS {
                start = clock - clock % 3600;
            }
            before = *clock;
            let key = format_time(start).replace(".000Z", "Z");
            self.expected.by_block.entry(key).or_default().add(sum);
        }
    }

    fn write_file(&mut self, path: &Path, text: &str) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        self.expected.files += 1;
        self.expected.bytes += text.len() as u64;
        fs::write(path, text)
    }
}

/// Seconds since 1970 as ISO 8601 in UTC.
fn format_time(seconds: u64) -> String {
    let (days, rest) = ((seconds / 86_400) as i64, seconds % 86_400);
    // The civil calendar from a count of days, by eras of 400 years.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.000Z", rest / 3600, rest / 60 % 60, rest % 60)
}
