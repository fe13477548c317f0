/** Whose request it is: method, key, scope and operation (rules 14 and 15). */
import { idempotent } from 'retrysafe/express'
import { afterEach, describe, expect, test } from 'vitest'
import { reply } from '../../../dist/http/reply.js'
import { type ExpressModule, requestText, type Site, site, storeWith, wire } from './site.js'

export function keySuite(express: ExpressModule): void {
  describe('keys', () => {
    let runs = 0
    let at: Site | undefined
    afterEach(async () => {
      await at?.close()
      runs = 0
    })

    const counting = async () => {
      runs += 1
      return reply(201, { run: runs })
    }

    test('a request without a key is refused with 400 and a link to the explanation, and does not run', async () => {
      at = await site(express, (app, safe) => app.post('/x', idempotent(safe, {}, counting)))
      const answer = await at.send('/x', { key: null, json: { a: 1 } })
      expect(answer.status).toBe(400)
      expect(answer.headers.get('content-type')).toBe('application/problem+json')
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('link')).toBe('</.well-known/retrysafe/KEY_REQUIRED>; rel="describedby"')
      expect(answer.json()).toMatchObject({
        type: '/.well-known/retrysafe/KEY_REQUIRED',
        status: 400,
        code: 'KEY_REQUIRED',
      })
      expect(runs).toBe(0)
    })

    test('a malformed key is refused before the store is asked', async () => {
      let asked = 0
      const store = storeWith((real) => ({
        claim: (request) => {
          asked += 1
          return real.claim(request)
        },
      }))
      at = await site(express, (app, safe) => app.post('/x', idempotent(safe, { mode: 'lease' }, counting)), {
        store,
      })
      const long = 'k'.repeat(256)
      for (const key of ['""', '"k', 'a,b', 'a b', '"k1";v=2', long, 'k'.repeat(10_000)]) {
        const answer = await at.send('/x', { key })
        expect({ key: key.slice(0, 9), status: answer.status, code: answer.json().code }).toMatchObject({
          status: 400,
          code: 'KEY_INVALID',
        })
        expect(answer.text).not.toContain(long)
      }
      expect({ asked, runs }).toEqual({ asked: 0, runs: 0 })
    })

    test('a blank key and a header sent twice are refused, also with equal values', async () => {
      at = await site(express, (app, safe) => app.post('/x', idempotent(safe, {}, counting)))
      const blank = requestText('/x', '{}', { 'idempotency-key': ' ', connection: 'close' })
      const twice = blank.replace('idempotency-key:  ', 'idempotency-key: k1\r\nIdempotency-Key: k1')
      for (const text of [blank, twice]) {
        const client = wire(at.port)
        client.write(text)
        await client.closed
        expect(client.received()).toContain('400 Bad Request')
        expect(client.received()).toContain('KEY_INVALID')
      }
      expect(runs).toBe(0)
    })

    test('a key bare and quoted is one key', async () => {
      at = await site(express, (app, safe) => app.post('/x', idempotent(safe, {}, counting)))
      expect((await at.send('/x', { key: 'k1' })).replayed).toBe(false)
      expect((await at.send('/x', { key: '"k1"' })).replayed).toBe(true)
      expect((await at.send('/x', { key: 'k'.repeat(255) })).status).toBe(201)
      expect(runs).toBe(2)
    })

    test('without a need for a key, an existing handler runs unprotected and a reply-handler under a key of its own', async () => {
      at = await site(express, (app, safe) => {
        app.post('/around', idempotent(safe, { required: false }), (req, res) => {
          runs += 1
          res.json({ attempt: req.idempotency === undefined ? 'none' : 'one' })
        })
        app.post(
          '/replies',
          idempotent(safe, { required: false }, async ({ tx }) => {
            tx.defer(() => {
              runs += 1
            })
            return reply(200)
          }),
        )
      })
      expect((await at.send('/around', { key: null })).json()).toEqual({ attempt: 'none' })
      expect((await at.send('/around', { key: null })).replayed).toBe(false)
      expect((await at.send('/replies', { key: null })).status).toBe(200)
      expect((await at.send('/replies', { key: null })).replayed).toBe(false)
      expect(runs).toBe(4)
    })

    test('GET passes, PUT and DELETE honour a key and need none, other methods can be named', async () => {
      at = await site(express, (app, safe) => {
        app.all('/x', idempotent(safe), (_req, res) => {
          runs += 1
          res.json({ runs })
        })
        app.all('/put', idempotent(safe, { methods: ['put'] }, counting))
      })
      for (const method of ['GET', 'HEAD', 'OPTIONS']) {
        await at.send('/x', { method })
        expect((await at.send('/x', { method })).replayed).toBe(false)
      }
      expect(runs).toBe(6)
      for (const method of ['PUT', 'DELETE', 'PATCH']) {
        await at.send('/x', { method, key: method })
        expect((await at.send('/x', { method, key: method })).replayed).toBe(true)
      }
      expect((await at.send('/x', { method: 'PUT', key: null })).status).toBe(200)
      expect((await at.send('/x', { method: 'PATCH', key: null })).status).toBe(400)
      expect((await at.send('/put', { method: 'PUT', key: null })).status).toBe(400)
      expect((await at.send('/put', { method: 'POST' })).status).toBe(404)
    })

    test('the header can have another name', async () => {
      at = await site(express, (app, safe) =>
        app.post('/x', idempotent(safe, { header: 'X-Request-Key' }, counting)),
      )
      expect((await at.send('/x')).status).toBe(400)
      await at.send('/x', { key: null, headers: { 'x-request-key': 'k' } })
      expect((await at.send('/x', { key: null, headers: { 'x-request-key': 'k' } })).replayed).toBe(true)
    })

    test('a key on two routes is a mismatch, unless they name operations; a query counts in any order', async () => {
      at = await site(express, (app, safe) => {
        const router = express.Router()
        router.post('/a', idempotent(safe, {}, counting))
        router.post('/b', idempotent(safe, {}, counting))
        router.post('/c', idempotent(safe, { operation: 'c' }, counting))
        router.post('/orders/:id', idempotent(safe, { operation: 'order' }, counting))
        app.use('/v1', router)
        app.use('/v2', router)
      })
      expect((await at.send('/v1/a?x=1&y=2')).status).toBe(201)
      expect((await at.send('/v1/a?y=2&x=1')).replayed).toBe(true)
      expect((await at.send('/v1/a?x=2&y=2')).status).toBe(422)
      expect((await at.send('/v1/b?x=1&y=2')).json()).toMatchObject({ code: 'KEY_REUSED' })
      expect((await at.send('/v2/a?x=1&y=2')).status).toBe(422)
      expect((await at.send('/v1/c')).status).toBe(201)
      expect((await at.send('/v1/orders/1')).status).toBe(201)
      expect((await at.send('/v1/orders/2')).status).toBe(422)
    })

    test('two callers with one key have two records', async () => {
      at = await site(express, (app, safe) =>
        app.post(
          '/x',
          idempotent(safe, { scope: async (req) => req.get('authorization') ?? '' }, async ({ scope }) => {
            runs += 1
            return reply(201, scope)
          }),
        ),
      )
      for (const authorization of ['alice', 'bob']) {
        const headers = { authorization }
        expect((await at.send('/x', { headers })).text).toBe(authorization)
        expect((await at.send('/x', { headers })).text).toBe(authorization)
      }
      expect(runs).toBe(2)
    })

    test('a caller nobody knows is an error, and the work does not run', async () => {
      const scopes = [() => '', () => undefined as unknown as string, async () => 5 as unknown as string]
      at = await site(express, (app, safe) => {
        for (const [index, scope] of scopes.entries())
          app.post(`/${index}`, idempotent(safe, { scope }, counting))
      })
      for (const index of scopes.keys()) {
        const answer = await at.send(`/${index}`)
        expect(answer.status).toBe(500)
        expect(answer.json().code).toBe('SCOPE_INVALID')
      }
      expect(runs).toBe(0)
    })
  })
}
