/**
 * Finds transaction control in SQL text, and what ends a transaction by itself (an implicit COMMIT): the first words of each statement, past comments,
 * strings and quoted names.
 *
 * What slips through (a procedure that commits, a prepared text) is caught by the save, whose savepoint is gone then; this is here for a clear error at the
 * right line.
 */

/** First words of statements that control a transaction, or commit it before they do anything. */
const forbidden = new Set(
  `begin start commit rollback xa lock unlock create alter drop rename truncate grant revoke
  analyze cache check flush optimize repair reset load install uninstall change`.split(/\s+/),
)
/** Most statements hold none of the words, and are not looked at further. */
const mayControl = new RegExp(String.raw`\b(?:${[...forbidden, 'set'].join('|')})\b`, 'i')

/** One lexical unit: what is skipped, a word, a semicolon, or any other character. `/*!` and `/*M!` open code, not a comment. */
const unit = new RegExp(
  [
    String.raw`/\*M?!\d*`,
    String.raw`/\*[\s\S]*?(?:\*/|$)`,
    String.raw`--(?=\s|$)[^\n]*`,
    String.raw`#[^\n]*`,
    String.raw`'(?:[^'\\]|\\[\s\S]|'')*'?`,
    String.raw`"(?:[^"\\]|\\[\s\S]|"")*"?`,
    '`(?:[^`]|``)*`?',
    String.raw`(?<word>@{0,2}[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    '(?<semicolon>;)',
    String.raw`[\s\S]`,
  ].join('|'),
  'g',
)

/** What is refused of a statement, if anything of the text is. */
export function controlsTransaction(text: string): string | undefined {
  if (!mayControl.test(text)) return undefined
  return statementsOf(text)
    .map(refusedIn)
    .find((words) => words !== undefined)
}

function refusedIn(words: readonly string[]): string | undefined {
  const [first = '', second = ''] = words
  // MariaDB's `SET STATEMENT … FOR …` begins what follows; of other settings these end the transaction, or change the next.
  if (first === 'set') return words.find((word) => /^(?:@@)?(?:autocommit|transaction|password)$/.test(word))
  if (!forbidden.has(first)) return undefined
  // Back to a savepoint the work may go; the transaction stays open.
  if (first === 'rollback' && (second === 'to' || (second === 'work' && words[2] === 'to'))) return undefined
  // A temporary table commits nothing; nor does loading rows.
  if ((first === 'create' || first === 'drop') && words.slice(1, 4).includes('temporary')) return undefined
  if (first === 'load' && second !== 'index') return undefined
  return second === '' ? first : `${first} ${second}`
}

/** How many words of a statement are looked at: `create or replace temporary table` has four, and a list of settings a few. */
const looked = 12

function statementsOf(text: string): string[][] {
  const statements: string[][] = []
  let words: string[] = []
  for (const { groups } of text.matchAll(unit)) {
    if (groups?.word !== undefined && words.length < looked) words.push(groups.word.toLowerCase())
    if (groups?.semicolon === undefined) continue
    statements.push(words)
    words = []
  }
  return [...statements, words]
}
