//! A tree of sessions of any size, with its true totals beside it.
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

/// What was used, to the token and the billionth of a dollar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Sum {
    pub input: u64,
    pub output: u64,
    pub write_5m: u64,
    pub write_1h: u64,
    pub read: u64,
    pub searches: u64,
    pub messages: u64,
    pub nano_usd: u64,
    pub unpriced: BTreeSet<String>,
}

impl Sum {
    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.write_5m += other.write_5m;
        self.write_1h += other.write_1h;
        self.read += other.read;
        self.searches += other.searches;
        self.messages += other.messages;
        self.nano_usd += other.nano_usd;
        self.unpriced.extend(other.unpriced.iter().cloned());
    }

    /// An equal share of it; the first has what is left over.
    fn share(&self, parts: u64, is_first: bool) -> Self {
        let share = |n: u64| n / parts + if is_first { n % parts } else { 0 };
        Self {
            input: share(self.input),
            output: share(self.output),
            write_5m: share(self.write_5m),
            write_1h: share(self.write_1h),
            read: share(self.read),
            searches: share(self.searches),
            messages: share(self.messages),
            nano_usd: share(self.nano_usd),
            unpriced: self.unpriced.clone(),
        }
    }
}

/// The truth about a generated tree. Days are UTC.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Truth {
    pub total: Sum,
    pub by_day: BTreeMap<String, Sum>,
    pub by_session: BTreeMap<String, Sum>,
    pub by_model: BTreeMap<String, Sum>,
    pub by_project: BTreeMap<String, Sum>,
    pub by_block: BTreeMap<String, Sum>,
    pub by_tool: BTreeMap<String, Sum>,
    pub by_agent: BTreeMap<String, Sum>,
    pub by_turn: BTreeMap<String, Sum>,
    pub bytes: u64,
    pub files: u64,
}

/// Writes at least `bytes` of sessions under `dir/projects` and says what is true of them.
pub fn tree(dir: &Path, seed: u64, bytes: u64) -> io::Result<Truth> {
    let mut maker = Maker { random: seed | 1, ..Maker::default() };
    let mut n = 0;
    while maker.truth.bytes < bytes {
        n += 1;
        maker.session(dir, n)?;
    }
    maker.blocks();
    Ok(maker.truth)
}

/// Deletes every third session file of a tree, as a program that cleans up does, and
/// returns the deleted files.
pub fn vanish(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_session = |path: &Path| path.extension().is_some_and(|ext| ext == "jsonl");
    let files = crate::files(&dir.join("projects"), is_session);
    let gone: Vec<PathBuf> = files.into_iter().skip(1).step_by(3).collect();
    gone.iter().try_for_each(fs::remove_file)?;
    Ok(gone)
}

#[derive(Default)]
struct Maker {
    random: u64,
    truth: Truth,
    serial: u64,
    /// Messages of this session whose ids other sessions use too.
    again: u64,
    /// The messages of this session.
    messages: Vec<Made>,
    /// When each message was sent, and what it used.
    timed: Vec<(u64, Sum)>,
}

/// A message of the session that is being made.
struct Made {
    spent: Spent,
    clock: u64,
    tools: Vec<&'static str>,
    is_subagents: bool,
    turn: u64,
    /// Its first line in the session's own file; `None` if it has a file of its own.
    line: Option<usize>,
}

/// How the lines of a subagent are kept.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    /// There is none.
    None,
    /// In a file.
    File,
    /// In a file, and repeated in `progress` lines.
    Both,
    /// In `progress` lines only, as older versions did it.
    Progress,
}

const AGENT: &str = "Explore";

/// Name, and input, output, 5m, 1h and read rates in billionths of a dollar a token.
const MODELS: [(&str, [u64; 5]); 3] = [
    ("claude-opus-5-5", [4000, 20000, 5000, 8000, 200]),
    ("claude-sonnet-4-5-20250929", [3000, 15000, 3750, 6000, 300]),
    ("claude-haiku-4-5", [1000, 5000, 1250, 2000, 100]),
];
/// What sonnet costs when the whole prompt is over 200,000 tokens.
const SONNET_LONG: [u64; 5] = [6000, 22500, 7500, 12000, 600];

const CHINESE: [char; 60] = [
    '的', '一', '是', '在', '不', '了', '有', '和', '人', '这', '中', '大', '为', '上', '个', '国', '我', '以', '要',
    '他', '时', '来', '用', '们', '生', '到', '作', '地', '于', '出', '就', '分', '对', '成', '会', '可', '主', '发',
    '年', '动', '同', '工', '也', '能', '下', '过', '子', '说', '产', '种', '面', '而', '方', '后', '多', '定', '行',
    '学', '法', '所',
];

/// A word for a number.
fn spelt(mut number: u64) -> String {
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

/// What a message used.
struct Spent {
    model: &'static str,
    is_priced: bool,
    counts: [u64; 5],
    unsplit: bool,
    searches: u64,
    recorded: Option<u64>,
}

impl Maker {
    fn next(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below.max(1)
    }

    fn id(&mut self) -> String {
        self.serial += 1;
        format!(
            "{:08x}-{:04x}-4{:03x}-8000-{:012x}",
            self.next(1 << 32),
            self.next(1 << 16),
            self.next(1 << 12),
            self.serial
        )
    }

    /// What someone says: mostly short.
    fn words(&mut self) -> String {
        let times = match self.next(100) {
            0..10 => 10 + self.next(30),
            _ => 1 + self.next(5),
        };
        self.text(times)
    }

    /// What a tool gives back: mostly long, now and then very long. With these sizes
    /// half of all lines are below 1 kB, one in a hundred is over 25 kB, and a fifth of
    /// all bytes are in lines that cost something, as in published sessions.
    fn output(&mut self) -> String {
        let times = match self.next(100) {
            0..3 => 300 + self.next(1600),
            3..22 => 40 + self.next(100),
            _ => 1 + self.next(24),
        };
        self.text(times)
    }

    fn text(&mut self, phrases: u64) -> String {
        let mut out = String::new();
        let kind = self.next(8);
        for _ in 0..phrases {
            self.phrase(kind, &mut out);
        }
        out
    }

    /// A phrase as it stands in JSON: prose, code, Chinese, or a program's output.
    fn phrase(&mut self, kind: u64, out: &mut String) {
        match kind {
            0..3 => {
                for _ in 0..6 + self.next(9) {
                    out.push_str(&self.word());
                    out.push(' ');
                }
                out.push_str(". ");
            }
            3 => {
                for _ in 0..8 + self.next(12) {
                    out.push(CHINESE[self.rare(CHINESE.len())]);
                }
                out.push('，');
            }
            4 => {
                let path = format!("src/{}/{}.rs", self.word(), self.word());
                let line = self.next(900);
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
                self.next(99),
                self.word()
            )),
            _ => {
                let [name, part, snake] = [self.identifier(), self.identifier(), self.word()];
                let indent = 4 * (1 + self.next(5)) as usize;
                out.push_str(&format!("{:indent$}let {snake}_id = &self.{name}({part}.{snake}) => {{}};\\n", ""));
            }
        }
    }

    /// One of some thousand names, as a code base has them.
    fn identifier(&mut self) -> String {
        let name = self.rare(3000) as u64;
        let (first, second) = (spelt(name * 31 % 4096), spelt(name * 17 % 509));
        let (head, tail) = second.split_at(1);
        format!("{first}{}{tail}", head.to_uppercase())
    }

    /// One of some thousand words, a few of them far more often than the rest.
    fn word(&mut self) -> String {
        let number = self.rare(1 << 12) as u64;
        // Twice: common words are far more common than rare ones.
        spelt(if self.next(2) == 0 { number / 16 } else { number })
    }

    /// A number below a limit, low ones far more often.
    fn rare(&mut self, limit: usize) -> usize {
        let (a, b) = (self.next(1 << 20), self.next(1 << 20));
        (((a * b) >> 20) as usize * limit) >> 20
    }

    fn session(&mut self, dir: &Path, n: u64) -> io::Result<()> {
        let project = format!("-home-dev-project-{}", n % 7);
        let id = self.id();
        self.again = 0;
        let folder = dir.join("projects").join(&project);
        let mut clock = 1_790_000_000 + n * 3_700 + self.next(3_000);
        let (mut main, mut side) = (String::new(), String::new());
        let mut parent = String::from("null");
        let envelope = |id: &str| {
            format!(
                r#""isSidechain":false,"userType":"external","cwd":"/home/dev/project","sessionId":"{id}","version":"2.1.300","gitBranch":"main""#
            )
        };
        // Most sessions are short, some go on for days; like the sizes of real ones.
        let long = match self.next(40) {
            0 => 24,
            1..5 => 6,
            _ => 1,
        };
        let side_kept = match self.next(9) {
            0 => Side::File,
            1 => Side::Both,
            2 => Side::Progress,
            _ => Side::None,
        };
        let call = format!("toolu_agent_{id}");
        let (mut line, mut counted) = (0, 0);
        for turn in 0..(3 + self.next(8)) * long {
            let (uuid, words) = (self.id(), self.words());
            main.push_str(&format!(
                r#"{{"parentUuid":{parent},{},"type":"user","message":{{"role":"user","content":"{words}"}},"uuid":"{uuid}","timestamp":"{}"}}"#,
                envelope(&id), time(clock)
            ));
            main.push('\n');
            parent = format!("\"{uuid}\"");
            for step in 0..1 + self.next(6) {
                clock += 1 + self.next(40);
                let starts = (side_kept != Side::None && turn == 0 && step == 0).then_some(&*call);
                let in_side = side_kept != Side::None && starts.is_none() && self.next(8) == 0;
                let (lines, last) = self.message(&id, clock, &parent, starts);
                line += main[counted..].bytes().filter(|byte| *byte == b'\n').count();
                counted = main.len();
                if in_side && matches!(side_kept, Side::File | Side::Both) {
                    side.push_str(&lines);
                }
                if in_side && matches!(side_kept, Side::Both | Side::Progress) {
                    for repeated in lines.lines() {
                        let uuid = self.id();
                        main.push_str(&format!(
                            r#"{{"parentUuid":{parent},{},"type":"progress","data":{{"message":{repeated},"type":"agent_progress","prompt":"Look","agentId":"a1"}},"parentToolUseID":"{call}","uuid":"{uuid}","timestamp":"{}"}}"#,
                            envelope(&id), time(clock)
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
                    made.is_subagents = in_side;
                    // A subagent's work belongs to the turn that started it.
                    made.turn = if in_side { 1 } else { turn + 1 };
                    made.line = (!in_side || side_kept == Side::Progress).then_some(line);
                }
            }
            if turn == 2 && self.next(5) == 0 {
                // A line torn by a crash, set aside.
                main.push_str("{\"type\":\"assistant\",\"message\":{\"id\":\"msg_torn\",\"usage\":{\"output_to\n");
            }
            clock += 30 + self.next(4_000);
        }
        self.write(&folder.join(format!("{id}.jsonl")), &main)?;
        if !side.is_empty() {
            let side = side.replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"a1\"");
            let folder = folder.join(&id).join("subagents");
            self.write(&folder.join("agent-a1.jsonl"), &side)?;
            fs::write(folder.join("agent-a1.meta.json"), format!(r#"{{"agentType":"{AGENT}","toolUseId":"{call}"}}"#))?;
        }
        let lines = main.lines().count() as u64;
        // A copy that begins with the same line is the earlier one by its name.
        let cut = if self.next(6) == 0 { 1 + self.next(lines) as usize } else { 0 };
        let partial = self.id();
        if cut > 0 {
            let copied: String = main.split_inclusive('\n').take(cut).collect();
            self.write(&folder.join(format!("{partial}.jsonl")), &copied.replace(&id, &partial))?;
        }
        for made in std::mem::take(&mut self.messages) {
            let is_copied = made.line.is_some_and(|line| line < cut);
            let owner = if is_copied { id.as_str().min(&partial) } else { &id };
            self.credit(&made, owner, &project);
        }
        match self.next(6) {
            // A fork copies every line with its id; a resume of old copies them with new ids.
            0 => {
                let fork = self.id();
                let begin = format!(
                    "{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"timestamp\":\"{}\",\"sessionId\":\"{fork}\"}}\n",
                    time(clock + 9)
                );
                self.write(&folder.join(format!("{fork}.jsonl")), &(begin + &main.replace(&id, &fork)))
            }
            1 => {
                let resumed = self.id();
                let begin = format!(
                    "{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"timestamp\":\"{}\",\"sessionId\":\"{resumed}\"}}\n",
                    time(clock + 9)
                );
                let copy = main
                    .replace(&id, &resumed)
                    .replace("\"uuid\":\"", "\"uuid\":\"f")
                    .replace("\"parentUuid\":\"", "\"parentUuid\":\"f");
                self.write(&folder.join(format!("{resumed}.jsonl")), &(begin + &copy))
            }
            _ => Ok(()),
        }
    }

    /// The lines of one API message, and the id of the last of them. `starts` is a call
    /// that starts a subagent.
    fn message(&mut self, session: &str, clock: u64, parent: &str, starts: Option<&str>) -> (String, String) {
        let pick = self.next(100);
        let (model, known) = match pick {
            0..2 => ("glm-9-turbo", false),
            2..60 => (MODELS[0].0, true),
            60..80 => (MODELS[1].0, true),
            _ => (MODELS[2].0, true),
        };
        // Gateways use ids again: every session has its own message of this name.
        let id = if pick % 10 == 7 {
            self.again += 1;
            format!("msg_again_{}", self.again)
        } else {
            format!("msg_{}", self.id())
        };
        let request = if pick % 10 == 3 { String::new() } else { format!("req_{}", self.id()) };
        let unsplit = self.next(5) == 0;
        let long = self.next(12) == 0;
        let counts = [
            self.next(900),
            1 + self.next(3000),
            self.next(9000),
            if unsplit { 0 } else { self.next(3000) },
            if long { 200_000 + self.next(90_000) } else { self.next(90_000) },
        ];
        let searches = u64::from(self.next(30) == 0);
        let recorded = (self.next(40) == 0).then(|| 1_000 * self.next(90_000));
        let searches = if starts.is_some() { 0 } else { searches };
        let spent = Spent { model, is_priced: known || recorded.is_some(), counts, unsplit, searches, recorded };
        let mut lines = String::new();
        let mut parent = parent.to_owned();
        let blocks = 1 + self.next(3);
        for block in 0..blocks {
            let uuid = self.id();
            // Only the last line says it all, or all of them do.
            let output = if block + 1 == blocks { counts[1] } else { counts[1].min(1 + self.next(counts[1])) };
            let content = match (block, searches) {
                (0, _) if let Some(call) = starts => {
                    format!(
                        r#"{{"type":"tool_use","id":"{call}","name":"Agent","input":{{"subagent_type":"{AGENT}","prompt":"Look"}}}}"#
                    )
                }
                (0, 1) => {
                    format!(r#"{{"type":"tool_use","id":"toolu_{id}","name":"WebSearch","input":{{"query":"tide"}}}}"#)
                }
                (1, _) => format!(
                    r#"{{"type":"tool_use","id":"toolu_{id}_1","name":"Bash","input":{{"id":null,"model":null,"content":"{{\"usage\":{{\"output_tokens\":99}}}}","usage":{{"output_tokens":77}}}}}}"#
                ),
                _ => format!(r#"{{"type":"text","text":"{}"}}"#, self.words()),
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
                time(clock + block / 2)
            ));
            lines.push('\n');
            parent = format!("\"{uuid}\"");
        }
        // What the tools gave back stands in the file twice: for the model and for people.
        for _ in 1..blocks.min(2) {
            let (uuid, output) = (self.id(), self.output());
            lines.push_str(&format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/home/dev/project","sessionId":"{session}","version":"2.1.300","type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{id}_1","type":"tool_result","content":"{output}"}}]}},"uuid":"{uuid}","timestamp":"{}","toolUseResult":{{"stdout":"{output}","stderr":"","interrupted":false}}}}"#,
                time(clock + 1)
            ));
            lines.push('\n');
            parent = format!("\"{uuid}\"");
        }
        if searches == 1 {
            let uuid = self.id();
            lines.push_str(&format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"{session}","type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{id}","content":"{}"}}]}},"uuid":"{uuid}","timestamp":"{}"}}"#,
                self.words(), time(clock + 2)
            ));
            lines.push('\n');
            parent = format!("\"{uuid}\"");
        }
        let mut tools = Vec::new();
        tools.extend(starts.map(|_| "Agent"));
        tools.extend((searches == 1).then_some("WebSearch"));
        tools.extend((blocks > 1).then_some("Bash"));
        self.messages.push(Made { spent, clock, tools, is_subagents: false, turn: 0, line: None });
        (lines, parent)
    }

    /// Credits a session with a message.
    fn credit(&mut self, made: &Made, session: &str, project: &str) {
        let Made { spent, clock, .. } = made;
        let [input, output, write_5m, write_1h, read] = spent.counts;
        let prompt = input + write_5m + write_1h + read;
        let rates = MODELS
            .iter()
            .find(|(name, _)| *name == spent.model)
            .map(|(name, rates)| if name.contains("sonnet") && prompt > 200_000 { &SONNET_LONG } else { rates });
        // Without a split all writes are priced as five-minute ones.
        debug_assert!(!spent.unsplit || write_1h == 0);
        let nano = match (spent.recorded, rates) {
            (Some(recorded), _) => recorded,
            (None, Some(rates)) => {
                spent.counts.iter().zip(rates).map(|(n, rate)| n * rate).sum::<u64>() + spent.searches * 10_000_000
            }
            (None, None) => 0,
        };
        let unpriced = (!spent.is_priced).then(|| spent.model.to_owned());
        let sum = Sum {
            input,
            output,
            write_5m,
            write_1h,
            read,
            searches: spent.searches,
            messages: 1,
            nano_usd: nano,
            unpriced: unpriced.into_iter().collect(),
        };
        let Truth { total, by_day, by_session, by_model, by_project, by_tool, by_agent, by_turn, .. } = &mut self.truth;
        let agent = if made.is_subagents { AGENT } else { "main" };
        let sums = [
            total,
            by_day.entry(time(*clock)[..10].to_owned()).or_default(),
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
        self.timed.push((*clock, sum));
    }

    /// Five-hour blocks: a block begins at the full hour of the first message after the
    /// last one ended, or after five hours without a message.
    fn blocks(&mut self) {
        const HOURS: u64 = 5 * 3600;
        self.timed.sort_by_key(|(clock, _)| *clock);
        let (mut start, mut before) = (0, 0);
        for (clock, sum) in &self.timed {
            if clock - start >= HOURS || clock - before >= HOURS {
                start = clock - clock % 3600;
            }
            before = *clock;
            let key = time(start).replace(".000Z", "Z");
            self.truth.by_block.entry(key).or_default().add(sum);
        }
    }

    fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        self.truth.files += 1;
        self.truth.bytes += text.len() as u64;
        fs::write(path, text)
    }
}

/// Seconds since 1970 as ISO 8601 in UTC.
fn time(seconds: u64) -> String {
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
