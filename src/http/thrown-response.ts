/**
 * Answers that are thrown: some frameworks end a handler so. Taken for a failure, a redirect behind an order would take the order back.
 */

/** `redirect()` of Next.js throws an error whose digest says where to: `NEXT_REDIRECT;replace;/orders/1;307;`. */
const nextRedirect = /^NEXT_REDIRECT;(?:push|replace);(.*);(30[1-8]);$/s

/** The response that a throw stands for; undefined for an error. */
export function thrownResponse(error: unknown): Response | undefined {
  if (error instanceof Response) return error
  const digest = error instanceof Error && 'digest' in error ? String(error.digest) : ''
  const [, location, status] = nextRedirect.exec(digest) ?? []
  if (location === undefined) return undefined
  return new Response(null, { status: Number(status), headers: { location } })
}
