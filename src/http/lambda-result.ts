/**
 * Results of Lambda as replies, read as API Gateway reads them, and back.
 */
import { isUtf8 } from 'node:buffer'
import type { StoredReply } from '../outcome.js'
import { isFraming } from '../reply-headers.js'
import { isV2 } from './lambda-event.js'
import type { LambdaEvent, LambdaResult } from './lambda-types.js'
import { failOfOurs } from './user-code.js'

type Line = readonly [name: string, value: string]

/** A result of any form, as far as anybody has looked at it. */
interface Given {
  readonly statusCode?: unknown
  readonly headers?: Readonly<Record<string, unknown>> | null
  readonly multiValueHeaders?: Readonly<Record<string, readonly unknown[] | undefined>> | null
  readonly cookies?: readonly string[] | null
  readonly body?: unknown
  readonly isBase64Encoded?: unknown
}

/** The reply that API Gateway would make of what a handler returned; refuses what it would call malformed, so that nothing is stored. */
export function replyOf(result: unknown, event: LambdaEvent): StoredReply {
  const given = typeof result === 'object' && result !== null ? (result as Given) : undefined
  if (given?.statusCode === undefined && isV2(event)) return inferred(result)
  const { statusCode, body = '', isBase64Encoded } = given ?? {}
  const status = Number(statusCode)
  const text = body ?? ''
  if (!Number.isInteger(status) || status < 200 || status > 599 || typeof text !== 'string') {
    throw failOfOurs('OPTION_INVALID', {
      detail:
        'a handler must return { statusCode, headers, body } with a status from 200 to 599 and a text as body',
    })
  }
  return {
    status,
    headers: linesOf(given ?? {}),
    body: Buffer.from(text, isBase64Encoded === true ? 'base64' : 'utf8'),
  }
}

/** Format 2.0 takes anything without a status for the JSON body of a 200. */
function inferred(result: unknown): StoredReply {
  const text = typeof result === 'string' ? result : (JSON.stringify(result) ?? 'null')
  return { status: 200, headers: [['content-type', 'application/json']], body: Buffer.from(text) }
}

function linesOf({ headers, multiValueHeaders, cookies }: Given): Line[] {
  const lists = Object.entries(multiValueHeaders ?? {}).flatMap(([name, values = []]) =>
    values.map((value): Line => [name.toLowerCase(), String(value)]),
  )
  const listed = new Set(lists.map(([name]) => name))
  // Where both name a header the lists win, as API Gateway has it.
  const single = Object.entries(headers ?? {})
    .filter(([name, value]) => value !== undefined && value !== null && !listed.has(name.toLowerCase()))
    .map(([name, value]): Line => [name.toLowerCase(), String(value)])
  return [...single, ...lists, ...(cookies ?? []).map((cookie): Line => ['set-cookie', cookie])]
}

/** A reply in the form that the event's sender takes. Bytes that are no text go in base64. */
export function resultOf({ status, headers, body }: StoredReply, event: LambdaEvent): LambdaResult {
  const lists = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    if (!isFraming(lower)) lists.set(lower, [...(lists.get(lower) ?? []), value])
  }
  const isText = isUtf8(body)
  const bytes = Buffer.from(body)
  const rest = {
    statusCode: status,
    body: bytes.toString(isText ? 'utf8' : 'base64'),
    isBase64Encoded: !isText,
  }
  if (!isV2(event) && event.multiValueHeaders) {
    return { ...rest, headers: {}, multiValueHeaders: Object.fromEntries(lists) }
  }
  const cookies = lists.get('set-cookie') ?? []
  // A load balancer without lists takes one cookie.
  if (isV2(event)) lists.delete('set-cookie')
  else if (cookies.length > 0) lists.set('set-cookie', cookies.slice(-1))
  const joined = Object.fromEntries([...lists].map(([name, values]) => [name, values.join(', ')]))
  return { ...rest, headers: joined, ...(isV2(event) && { cookies }) }
}
