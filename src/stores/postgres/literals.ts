/** Values written into the text of a statement, for clients whose own way to send parameters costs or differs. */
import type { Call, Value } from './driver.js'

const pieces = new Map<string, readonly string[]>()

/** The statement with its values in the places of its parameters. */
export function inlined({ statement: { text }, values }: Call): string {
  if (values.length === 0) return text
  const split = pieces.get(text) ?? text.split(/\$(\d+)/)
  pieces.set(text, split)
  const literals = values.map(literal)
  return split.map((piece, at) => (at % 2 === 0 ? piece : literals[Number(piece) - 1])).join('')
}

/**
 * A value as a literal of no type yet, like a parameter. All but letters, digits and a few harmless signs is written as an escape, so that
 * neither `standard_conforming_strings` nor the client's encoding decides where a literal ends.
 */
export function literal(value: Value): string {
  if (value === null) return 'null'
  if (typeof value !== 'string') return `decode('${value.toString('base64')}', 'base64')`
  if (/^[\w .:-]*$/.test(value)) return `'${value}'`
  return `e'${value.replace(/[^\w .:-]/gu, escaped)}'`
}

function escaped(character: string): string {
  const point = (character.codePointAt(0) ?? 0).toString(16)
  return point.length > 4 ? `\\U${point.padStart(8, '0')}` : `\\u${point.padStart(4, '0')}`
}
