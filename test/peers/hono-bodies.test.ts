/** Bodies behind Hono, whoever has read them before: forms, JSON, bytes. */
import { Hono, type MiddlewareHandler } from 'hono'
import { expect, test } from 'vitest'
import { idempotent } from '../../dist/http/hono.js'
import { reply } from '../../dist/index.js'
import { type Env, isReplay, on, post, setUp } from './hono-room.js'

/** Ways in which middleware mounted before ours may have read a form. */
const formReaders: Record<string, MiddlewareHandler> = {
  parseBody: async (c, next) => {
    await c.req.parseBody()
    await next()
  },
  formData: async (c, next) => {
    await c.req.formData()
    await next()
  },
  text: async (c, next) => {
    await c.req.text()
    await next()
  },
  'nobody reads': (_c, next) => next(),
}

test.each(Object.entries(formReaders))(
  'multipart counts by fields and files, whatever boundary it is sent with (read before by: %s)',
  async (_, reader) => {
    const form = (content: string) => {
      const made = new FormData()
      made.append('name', 'alice')
      made.append('file', new File([content], 'a.txt', { type: 'text/plain' }))
      return made
    }
    const app = new Hono<Env>()
    app.post('/orders', reader, idempotent(setUp('transaction')), async (c) => {
      const { name, file } = await c.req.parseBody()
      return c.text(`${name}: ${await (file as File).text()}`)
    })
    await on(app, async (url) => {
      expect(await (await post(url, form('one'))).text()).toBe('alice: one')
      const again = await post(url, form('one'))
      expect([isReplay(again), await again.text()]).toEqual([true, 'alice: one'])
      expect((await post(url, form('two'))).status).toBe(422)
    })
  },
)

test.each(Object.entries(formReaders))('a key may come in a form (read before by: %s)', async (_, reader) => {
  const app = new Hono<Env>()
  let runs = 0
  app.post(
    '/orders',
    reader,
    idempotent(setUp('transaction', {}), { formField: 'key' }, ({ c }) => {
      runs += 1
      return reply(200, c.get('idempotency') === undefined)
    }),
  )
  await on(app, async (url) => {
    const send = (total: string) =>
      fetch(`${url}/orders`, { method: 'POST', body: new URLSearchParams({ key: 'k1', total }) })
    expect((await send('1')).status).toBe(200)
    expect(isReplay(await send('1'))).toBe(true)
    // A changed form is a new intent.
    expect(isReplay(await send('2'))).toBe(false)
    expect(
      (await fetch(`${url}/orders`, { method: 'POST', body: new URLSearchParams({ total: '1' }) })).status,
    ).toBe(400)
    expect(runs).toBe(2)
  })
})

test.each([true, false])(
  'JSON counts by exact value, and the handler reads it again (read before us: %s)',
  async (before) => {
    const app = new Hono<Env>()
    if (before)
      app.use(async (c, next) => {
        await c.req.json()
        await next()
      })
    app.post('/orders', idempotent(setUp('lease')), async (c) => c.json(await c.req.json()))
    await on(app, async (url) => {
      const json = (text: string) => post(url, text, { headers: { 'content-type': 'application/json' } })
      expect(await (await json('{"id":9007199254740992}')).text()).toBe('{"id":9007199254740992}')
      expect((await json('{"id":9007199254740993}')).status).toBe(422)
      expect(isReplay(await json(' {"id": 9007199254740992.0}'))).toBe(true)
    })
  },
)

test('bytes count as they are, and the handler finds them unread', async () => {
  const app = new Hono<Env>()
  app.post('/orders', idempotent(setUp('lease')), async (c) => c.body(await c.req.raw.arrayBuffer()))
  await on(app, async (url) => {
    const bytes = Uint8Array.of(0, 255, 128, 10)
    expect(new Uint8Array(await (await post(url, bytes)).arrayBuffer())).toEqual(bytes)
    expect(isReplay(await post(url, bytes))).toBe(true)
    expect((await post(url, Uint8Array.of(0))).status).toBe(422)
  })
})

test('a body that was read past Hono is refused: its retry could not be told from another request', async () => {
  const app = new Hono<Env>()
  app.use(async (c, next) => {
    await c.req.raw.text()
    await next()
  })
  app.post('/orders', idempotent(setUp('lease')), (c) => c.text('never'))
  await on(app, async (url) => {
    const answer = await post(url, 'text')
    expect([answer.status, await answer.json()]).toMatchObject([500, { code: 'OPTION_INVALID' }])
  })
})
