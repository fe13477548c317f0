/** What a service publishes about its keys (IETF draft, sections 2.3, 2.5.2 and 2.7), and how pages are served. */
import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import express from 'express'
import { errorTable, retrysafe } from 'retrysafe'
import { serve } from 'retrysafe/express'
import { memory } from 'retrysafe/memory'
import { afterEach, describe, expect, test } from 'vitest'
import { fail } from '../../dist/errors.js'
import { corsAllowedHeaders, corsExposedHeaders } from '../../dist/http/headers.js'
import { policy } from '../../dist/http/policy.js'
import { problemReply } from '../../dist/http/problem.js'
import { type Site, site } from './suite/site.js'

describe('policy', () => {
  let at: Site | undefined
  afterEach(() => at?.close())
  const mounted = (options = {}) =>
    site(express, (app, safe) => app.use('/.well-known/retrysafe', serve(policy(safe))), options)
  const get = (path: string, headers = {}, method = 'GET') =>
    (at as Site).send(`/.well-known/retrysafe${path}`, { method, key: null, headers })

  test('tells a client what it has to know to retry', async () => {
    at = await mounted({ retainMs: 3_600_000 })
    const answer = await get('')
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.json()).toMatchObject({
      header: 'Idempotency-Key',
      requiredFor: ['POST', 'PATCH'],
      optionalFor: ['PUT', 'DELETE'],
      retentionSeconds: 3600,
      kept: { statuses: '200-499', except: [401, 403, 407, 408, 409, 425, 429] },
      replayMarker: { header: 'Idempotent-Replayed', value: 'true' },
      statuses: { keyMissing: 400, keyMalformed: 400, inProgress: 409, keyReused: 422, unavailable: 503 },
    })
    expect(answer.json().keyFormat).toMatch(/bare \(then without a comma or a quote\) or as a quoted string/)
    expect(answer.json()).toEqual(policy(at.safe).document)
  })

  test('has a page for every error, as a person or a program asks for it, with nothing from elsewhere', async () => {
    at = await mounted()
    for (const [code, row] of Object.entries(errorTable)) {
      const page = await get(`/${code}`, { accept: 'text/html,*/*' })
      expect(page.status).toBe(200)
      expect(page.text).toContain(row.title)
      expect(page.text).toContain(row.advice)
      expect(page.text).not.toMatch(/src=|href=|<script/)
      expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
      const document = await get(`/${code}`, { accept: 'application/problem+json' })
      expect(document.json()).toMatchObject({
        code,
        status: row.status,
        type: `/.well-known/retrysafe/${code}`,
      })
    }
  })

  test('a problem links to a page that is there', async () => {
    at = await mounted()
    const { headers } = problemReply(fail('KEY_REUSED'), '/.well-known/retrysafe')
    const link = headers.find(([name]) => name === 'link')?.[1]
    const path = /^<(.+)>; rel="describedby"$/.exec(link ?? '')?.[1] ?? ''
    expect((await at.send(path, { method: 'GET' })).text).toContain('KEY_REUSED')
  })

  test('what is not there is 404, HEAD has no body, and nothing but reading is allowed', async () => {
    at = await mounted()
    for (const path of ['/NOPE', '/KEY_REUSED/x', '/constructor', '/%3Cscript%3E']) {
      const answer = await get(path)
      expect({ path, status: answer.status }).toEqual({ path, status: 404 })
      expect(answer.text).not.toContain('script')
    }
    const head = await get('/KEY_REUSED', {}, 'HEAD')
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: '' })
    expect((await get('', {}, 'POST')).status).toBe(405)
  })

  test('an instance without a mode has a policy too', () => {
    const { document } = policy(
      retrysafe({ store: memory(), keep: 'all', problemBase: 'https://x.example/p/' }),
    )
    expect(document.kept).toEqual({ statuses: '200-599', except: [] })
    expect(document.problems.KEY_REUSED).toBe('https://x.example/p/KEY_REUSED')
  })

  test('a handler behind serve() sees the request and its body, and what it throws reaches the error handler', async () => {
    at = await site(express, (app) => {
      app.use('/parsed', express.json())
      app.use(
        serve(async (request) => {
          const url = new URL(request.url)
          if (url.pathname === '/throws') throw new Error('by the page')
          const headers = new Headers({ 'x-method': request.method })
          headers.append('set-cookie', 'a=1')
          headers.append('set-cookie', 'b=2')
          return new Response(`${url.pathname}${url.search} ${await request.text()}`, {
            status: 207,
            headers,
          })
        }),
      )
    })
    for (const path of ['/plain?a=1&b=2', '/parsed?', '//evil/x']) {
      const answer = await at.send(path, { json: { a: 1 } })
      expect(answer.status).toBe(207)
      expect(answer.text).toBe(`${path.replace(/\?$/, '')} {"a":1}`)
      expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    }
    expect((await at.send('/throws', { method: 'GET' })).status).toBe(500)
    expect(at.errors).toHaveLength(1)
  })

  test('serve() answers over HTTP/2, whose own names are no headers', async () => {
    const handler = serve((request) => Response.json({ url: request.url, sent: [...request.headers.keys()] }))
    const server = createServer((req, res) => {
      const express = Object.assign(req, { originalUrl: req.url })
      handler(express as never, res as never, (error) => void res.end(String(error)))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const stream = client.request({ ':path': '/x?a=1', ':authority': 'shop.example', 'x-own': '1' })
    expect(await json(stream)).toEqual({ url: 'http://shop.example/x?a=1', sent: ['x-own'] })
    client.destroy()
    server.close()
  })

  test('the lists for CORS name what a page must send and read', () => {
    expect(corsAllowedHeaders).toContain('Idempotency-Key')
    expect([...corsExposedHeaders].sort()).toEqual(['Idempotent-Replayed', 'Link', 'Retry-After'])
  })

  test('Retry-After is whole seconds, rounded up, at least one', () => {
    const after = (retryAfterMs: number) =>
      problemReply(fail('IN_PROGRESS', { retryAfterMs }), '').headers.find(
        ([name]) => name === 'retry-after',
      )?.[1]
    expect([0, 1, 1000, 1001, 4999].map(after)).toEqual(['1', '1', '1', '2', '5'])
  })
})
