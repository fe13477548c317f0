/** Values as they stand in a failure's message: on one line, cut where they are long. */
import { inspect } from 'node:util'

const longest = 300

export function show(value: unknown): string {
  const text = inspect(value, { depth: 4, breakLength: Number.POSITIVE_INFINITY, maxArrayLength: 20 })
  return text.length > longest ? `${text.slice(0, longest)}… (${text.length} characters)` : text
}
