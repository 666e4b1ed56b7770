//! A tree of sessions of any size, with its true totals beside it.
//!
//! Deterministic, and with everything that makes counters wrong: several lines per
//! message with differing usage, resumed and forked copies, ids used again for other
//! messages, subagents, torn lines, recorded costs, unknown models, ids and usage
//! inside tool inputs, a heavy tail of line sizes, English, code and Chinese.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

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

/// The truth about a generated tree. Days are UTC.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Truth {
    pub total: Sum,
    pub by_day: BTreeMap<String, Sum>,
    pub by_session: BTreeMap<String, Sum>,
    pub by_model: BTreeMap<String, Sum>,
    pub by_project: BTreeMap<String, Sum>,
    pub bytes: u64,
    pub files: u64,
}

/// Writes at least `bytes` of sessions under `dir/projects` and says what is true of them.
pub fn tree(dir: &Path, seed: u64, bytes: u64) -> io::Result<Truth> {
    let mut maker = Maker { random: seed | 1, truth: Truth::default(), serial: 0, again: 0 };
    let mut n = 0;
    while maker.truth.bytes < bytes {
        n += 1;
        maker.session(dir, n)?;
    }
    Ok(maker.truth)
}

struct Maker {
    random: u64,
    truth: Truth,
    serial: u64,
    /// Messages of this session whose ids other sessions use too.
    again: u64,
}

/// Name, and input, output, 5m, 1h and read rates in billionths of a dollar a token.
const MODELS: [(&str, [u64; 5]); 3] = [
    ("claude-opus-5-5", [4000, 20000, 5000, 8000, 200]),
    ("claude-sonnet-4-5-20250929", [3000, 15000, 3750, 6000, 300]),
    ("claude-haiku-4-5", [1000, 5000, 1250, 2000, 100]),
];
/// What sonnet costs when the whole prompt is over 200,000 tokens.
const SONNET_LONG: [u64; 5] = [6000, 22500, 7500, 12000, 600];

const WORDS: [&str; 6] = [
    "The tide turns at noon and the harbour empties. ",
    "fn height(mean: f64, parts: &[Constituent]) -> f64 { parts.iter().map(|p| p.at(t)).sum() }\\n",
    "潮汐表按小时计算，抽奖脚本要先去重。",
    "const getUserById = async (id) => db.users.find((u) => u.user_id === id);\\n",
    "error[E0308]: mismatched types: expected `u32`, found `&str`\\n",
    "\\u001b[32mok\\u001b[0m 12 passed; 0 failed \\\"quoted\\\" ",
];

/// A message as the truth knows it.
struct Spent {
    model: &'static str,
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

    fn words(&mut self) -> String {
        // Mostly short, now and then very long.
        let times = match self.next(100) {
            0 => 800 + self.next(800),
            1..10 => 60 + self.next(100),
            _ => 1 + self.next(16),
        };
        let word = WORDS[self.next(WORDS.len() as u64) as usize];
        word.repeat(times as usize)
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
        let helped = self.next(3) == 0;
        for turn in 0..(3 + self.next(8)) * long {
            let (uuid, words) = (self.id(), self.words());
            main.push_str(&format!(
                r#"{{"parentUuid":{parent},{},"type":"user","message":{{"role":"user","content":"{words}"}},"uuid":"{uuid}","timestamp":"{}"}}"#,
                envelope(&id), time(clock)
            ));
            main.push('\n');
            parent = format!("\"{uuid}\"");
            for _ in 0..1 + self.next(6) {
                clock += 1 + self.next(40);
                let in_side = helped && self.next(8) == 0;
                let (lines, last) = self.message(&id, clock, &parent, &project);
                if in_side {
                    side.push_str(&lines)
                } else {
                    main.push_str(&lines)
                }
                if !in_side {
                    parent = last;
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
            self.write(&folder.join(&id).join("subagents/agent-a1.jsonl"), &side)?;
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

    /// The lines of one API message; the truth is credited with it.
    fn message(&mut self, session: &str, clock: u64, parent: &str, project: &str) -> (String, String) {
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
        let spent = Spent { model, counts, unsplit, searches, recorded };
        let mut lines = String::new();
        let mut parent = parent.to_owned();
        let blocks = 1 + self.next(3);
        for block in 0..blocks {
            let uuid = self.id();
            // Only the last line says it all, or all of them do.
            let output = if block + 1 == blocks { counts[1] } else { counts[1].min(1 + self.next(counts[1])) };
            let content = match (block, searches) {
                (0, 1) => {
                    format!(r#"{{"type":"tool_use","id":"toolu_{id}","name":"WebSearch","input":{{"query":"tide"}}}}"#)
                }
                (1, _) => format!(
                    r#"{{"type":"tool_use","id":"toolu_{uuid}","name":"Write","input":{{"id":null,"model":null,"content":"{{\"usage\":{{\"output_tokens\":99}}}}","usage":{{"output_tokens":77}}}}}}"#
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
        if searches == 1 {
            let uuid = self.id();
            lines.push_str(&format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"{session}","type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{id}","content":"{}"}}]}},"uuid":"{uuid}","timestamp":"{}"}}"#,
                self.words(), time(clock + 2)
            ));
            lines.push('\n');
            parent = format!("\"{uuid}\"");
        }
        self.credit(&spent, known, session, project, clock);
        (lines, parent)
    }

    fn credit(&mut self, spent: &Spent, known: bool, session: &str, project: &str, clock: u64) {
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
        let unpriced = !known && spent.recorded.is_none();
        let Truth { total, by_day, by_session, by_model, by_project, .. } = &mut self.truth;
        let day = time(clock)[..10].to_owned();
        let sums = [
            total,
            by_day.entry(day).or_default(),
            by_session.entry(session.to_owned()).or_default(),
            by_model.entry(spent.model.to_owned()).or_default(),
            by_project.entry(project.to_owned()).or_default(),
        ];
        for sum in sums {
            sum.input += input;
            sum.output += output;
            sum.write_5m += write_5m;
            sum.write_1h += write_1h;
            sum.read += read;
            sum.searches += spent.searches;
            sum.messages += 1;
            sum.nano_usd += nano;
            if unpriced {
                sum.unpriced.insert(spent.model.to_owned());
            }
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
