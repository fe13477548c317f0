/** A route module of Next.js, as it would stand in `app/orders/[id]/route.ts`. */
import { randomUUID } from 'node:crypto'
import { reply, retrysafe } from 'retrysafe'
import { idempotencyOf, idempotent } from 'retrysafe/fetch'
import { type MemoryTx, memory } from 'retrysafe/memory'

/** As `next/server` has it, as far as handlers use it; and what `redirect` and `notFound` of `next/navigation` throw. */
export class NextRequest extends Request {
  get nextUrl(): URL {
    return new URL(this.url)
  }
}

function redirect(url: string): never {
  throw Object.assign(new Error('NEXT_REDIRECT'), { digest: `NEXT_REDIRECT;replace;${url};307;` })
}

function notFound(): never {
  throw Object.assign(new Error('NEXT_HTTP_ERROR_FALLBACK;404'), { digest: 'NEXT_HTTP_ERROR_FALLBACK;404' })
}

interface Context {
  readonly params: Promise<{ readonly id: string }>
}

export const effects: string[] = []

const safe = retrysafe({
  store: memory(),
  mode: 'transaction',
  scope: (request: NextRequest) => request.headers.get('authorization') ?? '',
})

export const POST = idempotent(safe)(async (request: NextRequest, { params }: Context) => {
  const { id } = await params
  const { total } = (await request.json()) as { readonly total: number }
  const attempt = idempotencyOf<MemoryTx>(request)
  attempt?.tx.defer(() => effects.push(`${id}: ${total}`))
  if (request.nextUrl.searchParams.has('thanks')) redirect(`/orders/${id}?thanks=1;2`)
  if (request.nextUrl.searchParams.has('missing')) notFound()
  return Response.json({ id, receipt: randomUUID(), attempt: attempt?.attempt }, { status: 201 })
})

export const PATCH = idempotent(safe, {}, async ({ body, tx }) => {
  tx.defer(() => effects.push(`patched: ${body.total}`))
  return reply(200, { receipt: randomUUID() })
})

export const GET = idempotent(safe)((_request: NextRequest) => Response.json(effects))
