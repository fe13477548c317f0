/**
 * A proxy event of API Gateway as a request.
 */
import type { Content } from './content.js'
import type { HttpCall } from './exchange.js'
import { contentOf } from './fetch-body.js'
import { headerLines } from './headers.js'
import type { LambdaContext, LambdaEvent, LambdaEventV1, LambdaEventV2 } from './lambda-types.js'

/** What a rollback and an answer are given before Lambda ends the invocation, in ms. */
const lastWordsMs = 500

/** Whether an event is of payload format 2.0, and so must its result be. */
export function isV2(event: LambdaEvent): event is LambdaEventV2 {
  return 'rawPath' in event
}

/** Reads an event; of what Lambda passes besides, only the time that is left. */
export function callOf(event: LambdaEvent, context: unknown): HttpCall {
  const rawHeaders = headersOf(event)
  const clock = context as Partial<LambdaContext> | undefined
  return {
    // What is no request (a scheduled event that keeps a sandbox warm) has none, and passes.
    method: (isV2(event) ? event.requestContext.http.method : event.httpMethod) ?? '',
    target: isV2(event) ? targetOf(event.rawPath, event.rawQueryString) : targetOfV1(event),
    rawHeaders,
    request: event,
    ...(clock?.getRemainingTimeInMillis && {
      leftMs: () => Math.max(1, (clock.getRemainingTimeInMillis?.() ?? 0) - lastWordsMs),
    }),
    readBody: (limitBytes) => readBody(event, rawHeaders, limitBytes),
  }
}

/** Format 2.0 joins repeated headers with a comma, which no key may hold; format 1.0 has them in lists. */
function headersOf(event: LambdaEvent): string[] {
  const listed = isV2(event) ? undefined : event.multiValueHeaders
  return Object.entries(listed ?? event.headers ?? {}).flatMap(([name, values = []]) =>
    [values].flat().flatMap((value) => [name, value]),
  )
}

/** With the stage, where the client sent one; `path` lacks it. Parameters come decoded, in lists by name: their order counts for nothing. */
function targetOfV1(event: LambdaEventV1): string {
  const { path = event.path ?? '' } = (event.requestContext ?? {}) as { path?: string }
  const listed = event.multiValueQueryStringParameters ?? event.queryStringParameters ?? {}
  const query = new URLSearchParams()
  for (const [name, values = []] of Object.entries(listed))
    for (const value of [values].flat()) query.append(name, value)
  return targetOf(path, query.toString())
}

/** A path that was decoded on the way may hold what would begin a query. */
function targetOf(path: string, query: string): string {
  const safe = path.replaceAll('?', '%3F').replaceAll('#', '%23')
  return query === '' ? safe : `${safe}?${query}`
}

async function readBody(
  { body, isBase64Encoded }: LambdaEvent,
  rawHeaders: readonly string[],
  limitBytes: number,
): Promise<Content | undefined> {
  if (body === undefined || body === null || body === '') return undefined
  const bytes = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8')
  return contentOf(bytes, (name) => headerLines(rawHeaders, name)[0], limitBytes)
}
