/**
 * The page at `/`: an order form, the order just placed, and what to try.
 *
 * The key is drawn when the form is rendered and lies in a hidden field: a double click, a reload of the submission and the back
 * button all send the same key, so they mean the same order. A new form has a new key.
 */
import type { Order, OrderProblems } from './orders.js'
import { orderPageStyle } from './orders-page-style.js'

/** The form field that carries the key; the `formField` of the route. */
export const keyField = 'idempotencyKey'

export interface OrderPage {
  /** For the style sheet, as in {@link orderPageHeaders}; fresh for every page. */
  readonly nonce: string
  /** Fresh for every form; kept when a refused form is shown again. */
  readonly idempotencyKey: string
  /** Fresh for every page: the key of the command lines. */
  readonly exampleKey: string
  /** `http://localhost:3000`. */
  readonly origin: string
  /** The order to show: the one that `?order=` names. */
  readonly order?: Order | undefined
  /** One sentence above the form: no such order, or why the form was refused. */
  readonly notice?: string
  /** What was typed into a form that was refused. */
  readonly values?: { readonly customerId?: string; readonly totalCents?: string }
  readonly problems?: OrderProblems
}

/** Where a placed order is shown: the `Location` of a 303, so that a reload does not send the form again. */
export function orderLocation(orderId: string): string {
  return `/?order=${encodeURIComponent(orderId)}`
}

/**
 * Headers of the page. Not `no-store`: the back button would then fetch a new form, with a new key, and what the user sends
 * again would be a second order. `no-cache` asks the server on every new visit and leaves history alone.
 */
export function orderPageHeaders(nonce: string): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'private, no-cache',
    'Content-Security-Policy':
      `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'self'; form-action 'self'; ` +
      "base-uri 'none'; frame-ancestors 'none'",
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
  }
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

function placedOrder({ order, notice }: OrderPage): string {
  if (notice !== undefined) return `<p class="notice" role="alert">${escapeHtml(notice)}</p>`
  if (order === undefined) return ''
  const amount = `${(order.totalCents / 100).toFixed(2)}`
  return `<section class="notice good" aria-labelledby="placed">
  <h2 id="placed">Order placed</h2>
  <dl>
    <dt>Order</dt><dd><code>${escapeHtml(order.orderId)}</code></dd>
    <dt>Customer</dt><dd>${escapeHtml(order.customerId)}</dd>
    <dt>Total</dt><dd>${amount}</dd>
    <dt>Placed</dt><dd><time datetime="${order.createdAt}">${order.createdAt.replace('T', ' ').slice(0, 19)} UTC</time></dd>
  </dl>
  <p>Reload this page, or go back and send the form again: it stays one order.</p>
</section>`
}

function field(
  page: OrderPage,
  name: 'customerId' | 'totalCents',
  label: string,
  attributes: string,
): string {
  const problem = page.problems?.[name]
  const value = page.values?.[name] ?? ''
  const fault = problem === undefined ? '' : ` aria-invalid="true" aria-describedby="${name}-problem"`
  const message =
    problem === undefined ? '' : `<p class="problem" id="${name}-problem">${escapeHtml(problem)}</p>`
  return `<label for="${name}">${label}</label>
  <input id="${name}" name="${name}" value="${escapeHtml(value)}" required ${attributes}${fault}>${message}`
}

// `autocomplete="off"` on the key: Firefox carries field values over a reload, and a new form would get the old key.
function form(page: OrderPage): string {
  return `<form id="order-form" method="post" action="/orders">
  <input type="hidden" name="${keyField}" value="${escapeHtml(page.idempotencyKey)}" autocomplete="off">
  ${field(page, 'customerId', 'Customer', 'maxlength="200" autocomplete="off" placeholder="c-42"')}
  ${field(page, 'totalCents', 'Total in cents', 'inputmode="numeric" pattern="[0-9]{1,16}" title="A whole number of cents" autocomplete="off" placeholder="4000"')}
  <button type="submit">Place order</button>
  <p id="order-status" role="status"></p>
</form>`
}

/** Three commands to paste into a shell, in this order. The origin is pasted too: take it from the port, not from a request. */
export function exampleCommands(
  origin: string,
  key: string,
): { readonly says: string; readonly command: string }[] {
  const post = (flags: string, withKey: string, total: number) =>
    [
      `curl ${origin}/orders`,
      `-H 'Idempotency-Key: ${withKey}'`,
      `-H 'Content-Type: application/json'`,
      `-d '{"customerId":"curl","totalCents":${total}}'`,
      flags,
    ].join(' \\\n  ')
  const statusOnly = `-s -o /dev/null -w '%{http_code}\\n'`
  return [
    { says: 'Run it twice: the second answer is the first one, replayed.', command: post('-i', key, 4000) },
    { says: 'The same key for another total is refused: 422.', command: post('-i', key, 4001) },
    {
      says: 'Five at once under one key: one order. Whoever comes too early is told 409, and when to return.',
      command: `for n in 1 2 3 4 5; do ${post(statusOnly, `${key}-five`, 4000)} & done; wait`,
    },
  ]
}

function trials({ origin, exampleKey }: OrderPage): string {
  const items = exampleCommands(origin, exampleKey).map(
    ({ says, command }) =>
      `<li><p>${escapeHtml(says)}</p><pre tabindex="0" aria-label="Command"><code>${escapeHtml(command)}</code></pre></li>`,
  )
  return `<section aria-labelledby="try">
  <h2 id="try">Try it from a shell</h2>
  <ol>${items.join('')}</ol>
</section>`
}

/** The whole page. */
export function orderPage(page: OrderPage): string {
  const title = page.order === undefined ? 'Place an order' : 'Order placed'
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · retrysafe</title>
<style nonce="${escapeHtml(page.nonce)}">${orderPageStyle}</style>
<script src="/order-form.js" defer></script>
</head>
<body>
<main>
<header>
  <h1>Place an order</h1>
  <p>Click twice, reload, go back and send it again. Effects commit exactly once; attempts are at least once.</p>
</header>
${placedOrder(page)}
${form(page)}
${trials(page)}
<footer><a href="/orders">All orders (JSON)</a> <a href="/.well-known/retrysafe">Idempotency policy (JSON)</a></footer>
</main>
</body>
</html>
`
}
