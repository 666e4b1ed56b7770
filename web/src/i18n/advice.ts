// Sentences about the prompt cache and advice. The server writes them in English; here they are in Chinese.
import type { Explanation } from "../api/model.ts";
import { preferences } from "../state/preferences.svelte.ts";

type Advice = Explanation["advice"][number];

/** Causes of cache misses: their name, and what to do. */
const CAUSES: Record<string, [string, string]> = {
  ttl_expired: ["缓存过期", "在缓存有效期内继续，或者经常停顿时使用 1 小时的有效期"],
  model_changed: ["模型改变", "每个模型有自己的缓存；在对话变长之前选好模型"],
  tools_changed: ["工具改变", "会话中保持工具及其顺序不变；在第一条提示之前连接 MCP 服务器"],
  beta_changed: ["beta 改变", "会话中保持快速模式和 beta 标头不变"],
  system_changed: ["系统提示改变", "保持系统提示不变；日期等会变化的内容放进消息里"],
  thinking_changed: ["思考设置改变", "在对话变长之前选好 effort 和思考设置"],
  tool_choice_changed: ["tool_choice 改变", "对话中保持 tool_choice 不变"],
  images_changed: ["图片改变", "在对话开头加入图片，或者交给子代理处理"],
  first_message_changed: ["首条消息改变", "会话期间不要改动 CLAUDE.md 等首条消息的内容；新内容追加在最后"],
  message_edited: ["消息被修改", "不要修改已发送的消息，包括键的顺序；改为追加"],
  truncated: ["历史被截断", "在保留的消息处设置断点，或者少次多量地删除消息"],
  compacted: ["压缩", "摘要从此会被缓存；在任务之间压缩，不要在任务中途压缩"],
  context_edited: ["上下文被清理", "让服务器一次清理更多 token，从而减少清理次数"],
  thinking_dropped: ["思考被丢弃", "较新的模型会保留之前轮次的思考"],
  lookback: ["超出回看范围", "至少每 20 个块设置一个断点，例如在大量工具结果中间"],
  concurrent: ["并发请求", "先等到第一个响应的第一个事件，再发送相同前缀的请求"],
  below_minimum: ["低于最小长度", "提示太短，不能使用该模型的缓存；只是没有折扣"],
  account_changed: ["账户改变", "缓存不在账户之间共享；一个对话使用同一个凭据"],
  unknown: ["未知", "与前一个请求没有差别：缓存条目被清除，或者变化没有被记录"],
};

const POLICIES: Record<string, string> = {
  "ttl-5m": "所有断点的有效期为 5 分钟",
  "ttl-1h": "所有断点的有效期为 1 小时",
  "last-message": "只有一个断点，在最后一条消息末尾",
  "tools-system": "只有一个断点，在系统提示末尾",
  "stable-tools": "一个对话的所有调用使用相同顺序的相同工具",
  "no-side-calls": "省去标题、摘要等附带调用",
};

const isChinese = () => preferences.language === "zh";

export function causeName(cause: string): string {
  return (isChinese() && CAUSES[cause]?.[0]) || cause.replaceAll("_", " ");
}

/** What to do about misses of a cause; `english` is the server's sentence. */
export function causeAdvice(cause: string, english: string): string {
  return (isChinese() && CAUSES[cause]?.[1]) || english;
}

export function policyName(policy: string): string {
  return (isChinese() && POLICIES[policy]) || policy;
}

export function adviceText(advice: Advice): string {
  return (isChinese() && chineseAdvice(advice)) || advice.text;
}

function chineseAdvice({ kind, subject, number }: Advice): string | undefined {
  const name = subject ?? "";
  switch (kind) {
    case "cache_miss":
      return CAUSES[name] && `提示缓存因「${CAUSES[name][0]}」未命中 ${number} 次：${CAUSES[name][1]}`;
    case "policy":
      return POLICIES[name] && `如果${POLICIES[name]}，同样的调用会更便宜`;
    case "large_context":
      return `${number} 次 API 调用的提示超过 10 万 token；在任务之间新建会话或压缩`;
    case "waiting":
      return `忙碌时间的 ${number} % 在等待用户回答问题或批准权限；为总是批准的命令添加允许规则`;
    case "retries":
      return `忙碌时间的 ${number} % 在等待重新发送失败的 API 调用`;
    case "hooks":
      return `忙碌时间的 ${number} % 在运行钩子；把慢的钩子改为异步`;
    case "slow_tool":
      return `忙碌时间的 ${number} % 在运行 ${name}`;
  }
}
