/** Our restatement of Fastify's types, held against the real ones: drift fails this build, not the user's. */
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { expect, expectTypeOf, test } from 'vitest'
import type { FastifyReply as OurReply, FastifyRequest as OurRequest } from '../../dist/http/fastify.js'
import { idempotent, rawBody } from '../../dist/http/fastify.js'
import { reply, retrysafe } from '../../dist/index.js'
import { type MemoryTx, memory } from '../../dist/stores/memory.js'

const safe = retrysafe({
  store: memory(),
  mode: 'transaction',
  scope: (request: FastifyRequest) => request.headers.authorization ?? '',
})

test("Fastify's requests and replies fit what is used of them", () => {
  expectTypeOf<FastifyRequest>().toExtend<OurRequest>()
  expectTypeOf<FastifyReply>().toExtend<OurReply>()
})

test('plugins, hooks and handlers fit where they go, over HTTP/1 and HTTP/2', async () => {
  const app = fastify()
  app.register(rawBody)
  app.register(idempotent(safe, {}))
  app.register(idempotent(safe), { logLevel: 'warn' })
  app.post('/around', { preHandler: idempotent(safe, { mode: 'lease' }) }, async (request) => request.id)
  app.post<{ Body: { totalCents: number } }>(
    '/orders',
    { schema: { body: { type: 'object' } } },
    idempotent(safe, {}, ({ tx, body, request, key }) => {
      expectTypeOf(tx).toEqualTypeOf<MemoryTx>()
      return reply(201, { total: body.totalCents, key, id: request.id })
    }),
  )
  app.route({
    method: 'POST',
    url: '/own',
    handler: idempotent(safe, { scope: (request: FastifyRequest) => request.ip }, ({ request }) =>
      reply(200, request.hostname),
    ),
  })
  app.post(
    '/payments',
    idempotent(safe, { mode: 'lease' }, ({ commit }) => commit(() => reply(201))),
  )
  await app.close()
  const second = fastify({ http2: true })
  second.register(rawBody)
  second.register(idempotent(safe, {}))
  second.post(
    '/orders',
    idempotent(safe, {}, () => reply(204)),
  )
  await second.close()
  expect(app).toBeDefined()
})

test('what does not fit does not compile', () => {
  // @ts-expect-error a handler must return a reply
  const notAReply = () => idempotent(safe, {}, async () => ({ status: 200 }))
  // @ts-expect-error lease mode has no transaction to write through
  const noTx = () => idempotent(safe, { mode: 'lease' }, async ({ tx }) => reply(200, tx))
  // @ts-expect-error transaction mode commits by itself
  const noCommit = () => idempotent(safe, { mode: 'transaction' }, (own) => own.commit(() => reply(200)))
  // @ts-expect-error there is no such option
  const noOption = () => idempotent(safe, { retainSeconds: 1 })
  expectTypeOf([notAReply, noTx, noCommit, noOption]).toBeArray()
})
