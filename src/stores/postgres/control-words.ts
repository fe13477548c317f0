/**
 * Finds transaction control in SQL text: the first word of each statement, past comments, strings, quoted names and dollar quotes.
 *
 * Standard strings are assumed (`standard_conforming_strings`, the default since PostgreSQL 9.1). What slips through is caught by the
 * save's proof of its transaction; this is here for a clear error at the right line.
 */

const forbidden = new Set(['begin', 'start', 'commit', 'end', 'rollback', 'abort', 'prepare'])
/** Most statements hold none of the words, and are not looked at further. */
const mayControl = /\b(?:begin|start|commit|end|rollback|abort|prepare)\b/i

/** One lexical unit: what is skipped, a word, a semicolon, or any other character. */
const unit = new RegExp(
  [
    String.raw`--[^\n\r]*`,
    String.raw`[eE]'(?:[^'\\]|\\[\s\S]|'')*'?`,
    `'(?:[^']|'')*'?`,
    '"(?:[^"]|"")*"?',
    String.raw`\$(?<tag>[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$`,
    String.raw`(?<comment>/\*)`,
    String.raw`(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    '(?<semicolon>;)',
    String.raw`\d[\w.]*`,
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
  const to = second === 'work' || second === 'transaction' ? third : second
  // Back to a savepoint the work may go; the transaction stays open.
  if (first === 'rollback' && to === 'to') return undefined
  return first
}

/** The lower-case words of each statement: its first three, all that decides. */
function statementsOf(text: string): string[][] {
  const statements: string[][] = []
  let words: string[] = []
  // The body of a function written as BEGIN ATOMIC … END holds semicolons of its own.
  let depth = 0
  let before = ''
  unit.lastIndex = 0
  for (let match = unit.exec(text); match !== null; match = unit.exec(text)) {
    const { word, semicolon, comment } = match.groups ?? {}
    if (comment !== undefined) unit.lastIndex = endOfComment(text, unit.lastIndex)
    else if (match[0].startsWith('$') && match[0].length > 1)
      unit.lastIndex = endOfQuote(text, match[0], unit.lastIndex)
    else if (word !== undefined) {
      const lower = word.toLowerCase()
      if (words.length < 3) words.push(lower)
      if (depth > 0 && lower === 'case') depth += 1
      if (depth > 0 && lower === 'end') depth -= 1
      if (before === 'begin' && lower === 'atomic' && words[0] === 'create') depth = 1
      before = lower
    } else if (semicolon !== undefined && depth === 0) {
      statements.push(words)
      words = []
    }
  }
  return [...statements, words]
}

function endOfQuote(text: string, quote: string, from: number): number {
  const end = text.indexOf(quote, from)
  return end < 0 ? text.length : end + quote.length
}

/** Comments nest in PostgreSQL. */
function endOfComment(text: string, from: number): number {
  const edge = /\/\*|\*\//g
  edge.lastIndex = from
  let depth = 1
  for (let match = edge.exec(text); match !== null; match = edge.exec(text)) {
    depth += match[0] === '/*' ? 1 : -1
    if (depth === 0) return edge.lastIndex
  }
  return text.length
}
