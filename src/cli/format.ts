/** Makes records and tables readable; what a terminal would obey instead of showing is escaped. */
import type { Outcome, RecordView } from '../index.js'

/** Keys pass no control characters, but a table may hold what never passed our checks. */
export function shown(text: string): string {
  return /\p{Cc}/u.test(text) ? jsonText(text) : text
}

/** JSON whose control characters beyond ASCII are escaped as well: JSON itself leaves them, and a terminal begins a command with one (U+009B). */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(
    /[\u007f-\u009f]/g,
    (found) => `\\u00${found.charCodeAt(0).toString(16)}`,
  )
}

export function duration(durationMs: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  const [name, size] = units.find(([, least]) => Math.abs(durationMs) >= least) ?? (['ms', 1] as const)
  return `${Math.round((durationMs / size) * 10) / 10} ${name}`
}

/** Columns as wide as their widest cell, two spaces between them. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function recordTable(records: readonly RecordView[]): string {
  return table(
    ['STATE', 'GENERATION', 'ATTEMPTS', 'END', 'SCOPE', 'OPERATION', 'KEY'],
    records.map((record) => [
      record.state,
      String(record.generation),
      String(record.attempts),
      endOf(record),
      shown(record.scope),
      record.operation === undefined ? '-' : shown(record.operation),
      shown(record.key),
    ]),
  )
}

/** The end of the lease or of the retention, from now. */
export function endOf({ leftMs }: RecordView): string {
  return leftMs > 0 ? `in ${duration(leftMs)}` : `${duration(-leftMs)} ago`
}

export function recordLines(record: RecordView): string {
  const lines = [
    ['key', shown(record.key)],
    ['scope', shown(record.scope)],
    ...(record.operation === undefined ? [] : [['operation', shown(record.operation)]]),
    ['state', record.state],
    ['generation', String(record.generation)],
    ['attempts', String(record.attempts)],
    [record.state === 'running' ? 'lease ends' : 'retention ends', endOf(record)],
  ]
  return lines.map(([name = '', value = '']) => `${name.padEnd(15)} ${value}`).join('\n')
}

/** An outcome as JSON can hold it: bytes as text where they are UTF-8, else as base64. */
export function outcomeJson(outcome: Outcome): object {
  if (outcome.kind === 'reply')
    return { kind: outcome.kind, ...outcome.reply, body: undefined, ...bytesJson(outcome.reply.body) }
  if (outcome.kind === 'value' && outcome.value instanceof Uint8Array)
    return { kind: outcome.kind, ...bytesJson(outcome.value) }
  return outcome
}

function bytesJson(bytes: Uint8Array): { body: string } | { bodyBase64: string } {
  try {
    return { body: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { bodyBase64: Buffer.from(bytes).toString('base64') }
  }
}
