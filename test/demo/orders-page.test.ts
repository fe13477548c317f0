import { expect, test } from 'vitest'
import { orderFromForm, orderFromJson } from '../../demo/orders.js'
import { type OrderPage, orderLocation, orderPage, orderPageHeaders } from '../../demo/orders-page.js'

const page: OrderPage = {
  nonce: 'n0nce',
  idempotencyKey: 'key-1',
  exampleKey: 'key-2',
  origin: 'http://localhost:3000',
}

test('the form works without a script: it posts its fields and the key that was drawn for it', () => {
  const html = orderPage(page)
  expect(html).toContain('<form id="order-form" method="post" action="/orders">')
  expect(html).toContain('<input type="hidden" name="idempotencyKey" value="key-1" autocomplete="off">')
  expect(html).toMatch(/<label for="customerId">[\s\S]*<input id="customerId" name="customerId"/)
  expect(html).toMatch(/<label for="totalCents">[\s\S]*<input id="totalCents" name="totalCents"/)
})

test('nothing inline runs: the only script is a file, and the policy allows no other', () => {
  expect(orderPage(page).match(/<script[^>]*>/g)).toEqual(['<script src="/order-form.js" defer>'])
  expect(orderPage(page)).not.toMatch(/ on\w+=| style=|https?:\/\/(?!localhost)/)
  expect(orderPageHeaders('n0nce')['Content-Security-Policy']).toContain(
    "default-src 'none'; style-src 'nonce-n0nce'",
  )
})

test('the page may be kept by history: the back button must find the same key', () => {
  expect(orderPageHeaders('n')['Cache-Control']).toBe('private, no-cache')
})

test('what a caller typed is shown as text', () => {
  const html = orderPage({
    ...page,
    origin: 'http://x"><b>',
    notice: '<i>',
    values: { customerId: '"><script>alert(1)</script>' },
    problems: { customerId: 'Give & take' },
  })
  expect(html).not.toMatch(/<b>|<i>|<script>/)
  expect(html).toContain('aria-invalid="true" aria-describedby="customerId-problem"')
  expect(html).toContain('Give &amp; take')
})

test('a placed order is shown by its own address, with a new form below', () => {
  const order = { orderId: 'o-1', customerId: 'c<1', totalCents: 4005, createdAt: '2026-01-02T03:04:05.678Z' }
  expect(orderLocation('o-1')).toBe('/?order=o-1')
  const html = orderPage({ ...page, order })
  expect(html).toContain('<dd>40.05</dd>')
  expect(html).toContain('<dd>c&lt;1</dd>')
  expect(html).toContain('value="key-1"')
})

test('in JSON a total is a number, in a form it is digits, and nothing else is an order', () => {
  const order = { customerId: 'c-1', totalCents: 4000 }
  expect(orderFromJson(order)).toEqual({ order })
  expect(orderFromForm({ customerId: ' c-1 ', totalCents: '4000' })).toEqual({ order })
  expect(orderFromForm(new URLSearchParams('customerId=c-1&totalCents=4000'))).toEqual({ order })
  const wrong = ['4000', 0, -1, 1.5, 2 ** 53, null, undefined, true, [4000]]
  for (const totalCents of wrong)
    expect(orderFromJson({ customerId: 'c-1', totalCents })).toHaveProperty('problems')
  for (const customerId of ['', ' ', 'a\0b', '\ud800', 'x'.repeat(201), 7, null]) {
    expect(orderFromJson({ customerId, totalCents: 1 })).toHaveProperty('problems')
  }
  for (const totalCents of ['', '1e3', '-1', '0x10', '99999999999999999', ['1']]) {
    expect(orderFromForm({ customerId: 'c-1', totalCents })).toHaveProperty('problems')
  }
  for (const body of [undefined, null, 'text', 5, []]) expect(orderFromJson(body)).toHaveProperty('problems')
})
