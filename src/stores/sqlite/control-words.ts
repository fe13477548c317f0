/**
 * Finds transaction control in SQL text: the first word of each statement, past comments, strings and quoted names.
 *
 * What slips through is caught by the save's proof of its transaction; this is here for a clear error at the right line.
 */

const forbidden = new Set(['begin', 'commit', 'end', 'rollback'])
/** Most statements hold none of the words, and are not looked at further. */
const mayControl = /\b(?:begin|commit|end|rollback)\b/i

/** One lexical unit: what is skipped, a word, a semicolon, or any other character. Comments do not nest in SQLite. */
const unit = new RegExp(
  [
    String.raw`--[^\n]*`,
    String.raw`/\*[\s\S]*?(?:\*/|$)`,
    `'(?:[^']|'')*'?`,
    '"(?:[^"]|"")*"?',
    '`(?:[^`]|``)*`?',
    String.raw`\[[^\]]*\]?`,
    String.raw`(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    '(?<semicolon>;)',
    String.raw`[:@$?]?\d*[\w.]*`,
    String.raw`[\s\S]`,
  ].join('|'),
  'g',
)

/** The forbidden word a statement begins with, if any of the text's statements does. */
export function controlsTransaction(text: string): string | undefined {
  if (!mayControl.test(text)) return undefined
  return statementsOf(text)
    .map(forbiddenIn)
    .find((word) => word !== undefined)
}

function forbiddenIn(words: readonly string[]): string | undefined {
  const [first, second, third] = words
  if (first === undefined || !forbidden.has(first)) return undefined
  // Back to a savepoint the work may go; the transaction stays open.
  if (first === 'rollback' && (second === 'transaction' ? third : second) === 'to') return undefined
  return first
}

/** The lower-case words of each statement: its first three, all that decides. */
function statementsOf(text: string): string[][] {
  const statements: string[][] = []
  let words: string[] = []
  // The body of a trigger, BEGIN … END, holds semicolons of its own, and CASE … END an end of its own.
  let depth = 0
  for (const { 0: found, groups } of text.matchAll(unit)) {
    if (groups?.semicolon !== undefined && depth === 0) {
      statements.push(words)
      words = []
    }
    if (groups?.word === undefined) continue
    const word = found.toLowerCase()
    const inTrigger = words[0] === 'create' && words.slice(1).includes('trigger')
    if (inTrigger && word === 'begin') depth = 1
    else if (depth > 0 && word === 'case') depth += 1
    else if (depth > 0 && word === 'end') depth -= 1
    if (words.length < 3) words.push(word)
  }
  return [...statements, words]
}
