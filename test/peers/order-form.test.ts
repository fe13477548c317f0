/** The order form in a real browser: whatever a person does to it, one form is one order. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Demo, demoFolder, removeFolder, startDemo } from '../demo/demo-process.js'
import { type FreshDatabase, freshDatabase } from '../setup/database.js'
import { until } from '../setup/until.js'
import { findChromium, openBrowser } from './chromium.js'

const found = findChromium()
const title = 'missing' in found ? `the order form (skipped: ${found.missing})` : 'the order form'

/** Orders that are kept waiting. */
interface Held {
  waiting(): Promise<number>
  release(): Promise<void>
}

describe.skipIf('missing' in found)(title, () => {
  let folder: string
  let database: FreshDatabase
  let pool: pg.Pool
  let demo: Demo
  let held: Held | undefined
  let closeBrowser: () => Promise<void> = async () => undefined

  beforeAll(async () => {
    folder = demoFolder()
    database = await freshDatabase()
    pool = new pg.Pool({ connectionString: database.connectionString })
    demo = await startDemo(folder, { DATABASE_URL: database.connectionString })
  })

  afterEach(async () => {
    await held?.release()
    await closeBrowser()
  })

  afterAll(async () => {
    await demo?.stop('SIGTERM')
    await pool?.end()
    await database?.drop()
    removeFolder(folder)
  })

  /** The form, filled in for a customer of the test's own. */
  async function openForm(javaScriptEnabled: boolean): Promise<{ page: Page; customer: string }> {
    const { context, close } = await openBrowser('path' in found ? found.path : '', { javaScriptEnabled })
    closeBrowser = close
    const page = context.pages()[0] ?? (await context.newPage())
    await page.goto(demo.url)
    const customer = randomUUID()
    await fill(page, customer)
    return { page, customer }
  }

  async function fill(page: Page, customer: string, total = '4000'): Promise<void> {
    await page.fill('#customerId', customer)
    await page.fill('#totalCents', total)
  }

  async function placed(page: Page): Promise<string> {
    await page.waitForURL(/\?order=/)
    await page.waitForSelector('#placed')
    return page.url()
  }

  async function orders(customer: string): Promise<number> {
    const { rows } = await pool.query('select count(*)::int as n from demo.orders where customer_id = $1', [
      customer,
    ])
    return rows[0].n
  }

  /** Keeps every order waiting until it is released, and tells how many wait. */
  async function holdOrders(): Promise<Held> {
    const client = await pool.connect()
    await client.query('begin')
    await client.query('lock table demo.orders in exclusive mode')
    return {
      waiting: async () => {
        const { rows } = await client.query(
          `select count(*)::int as n from pg_locks where not granted and relation = 'demo.orders'::regclass`,
        )
        return rows[0].n
      },
      release: async () => {
        held = undefined
        await client.query('rollback')
        client.release()
      },
    }
  }

  for (const javaScriptEnabled of [true, false]) {
    describe(javaScriptEnabled ? 'with script' : 'without script', () => {
      test('a double click is one order', async () => {
        const { page, customer } = await openForm(javaScriptEnabled)
        await page.dblclick('button[type=submit]')
        await placed(page)
        expect(await orders(customer)).toBe(1)
      })

      test('Enter twice is one order', async () => {
        const { page, customer } = await openForm(javaScriptEnabled)
        await page.focus('#totalCents')
        await page.keyboard.press('Enter', { delay: 0 })
        await page.keyboard.press('Enter', { delay: 0 })
        await placed(page)
        expect(await orders(customer)).toBe(1)
      })

      test('a reload of the page that shows the order places none', async () => {
        const { page, customer } = await openForm(javaScriptEnabled)
        await page.click('button[type=submit]')
        const shown = await placed(page)
        await page.reload()
        expect(await placed(page)).toBe(shown)
        expect(await orders(customer)).toBe(1)
      })

      test('back, and the same form again, leads to the same order', async () => {
        const { page, customer } = await openForm(javaScriptEnabled)
        const key = await page.inputValue('[name=idempotencyKey]')
        await page.click('button[type=submit]')
        const shown = await placed(page)
        await page.goBack()
        expect(await page.inputValue('[name=idempotencyKey]')).toBe(key)
        await fill(page, customer)
        await page.click('button[type=submit]')
        expect(await placed(page)).toBe(shown)
        expect(await orders(customer)).toBe(1)
      })

      test('back, and another total, is another order', async () => {
        const { page, customer } = await openForm(javaScriptEnabled)
        await page.click('button[type=submit]')
        const shown = await placed(page)
        await page.goBack()
        await fill(page, customer, '4001')
        await page.click('button[type=submit]')
        expect(await placed(page)).not.toBe(shown)
        expect(await orders(customer)).toBe(2)
      })
    })
  }

  /** Clicks where the button is. Playwright's own click would wait for the answer to the first. */
  async function clickTwiceMeanwhile(page: Page): Promise<{ sent(): number; held: Held }> {
    const box = await page.locator('button[type=submit]').boundingBox()
    if (box === null) throw new Error('the button is not to be seen')
    const click = () => page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
    let sent = 0
    page.on('request', (request) => {
      if (request.method() === 'POST') sent += 1
    })
    held = await holdOrders()
    await click()
    await until(async () => (await held?.waiting()) === 1, 'the first click')
    await click()
    return { sent: () => sent, held }
  }

  test('without script, a second click while the first is under way waits for its order', async () => {
    const { page, customer } = await openForm(false)
    const { sent, held } = await clickTwiceMeanwhile(page)
    await until(() => sent() === 2, 'the second click')
    expect(await held.waiting()).toBe(1)
    await held.release()
    await placed(page)
    expect(await orders(customer)).toBe(1)
  })

  test('with script, a second click while the first is under way is not sent at all', async () => {
    const { page, customer } = await openForm(true)
    const { sent, held } = await clickTwiceMeanwhile(page)
    await page.keyboard.press('Enter')
    await held.release()
    await placed(page)
    expect([sent(), await orders(customer)]).toEqual([1, 1])
  })

  test('a refused form keeps what was typed and its key, and can be corrected', async () => {
    const { page, customer } = await openForm(false)
    const key = await page.inputValue('[name=idempotencyKey]')
    await page.evaluate("document.querySelector('#order-form').noValidate = true")
    await page.fill('#totalCents', 'forty')
    await page.click('button[type=submit]')
    await page.waitForSelector('#totalCents-problem')
    expect(await page.inputValue('#customerId')).toBe(customer)
    expect(await page.inputValue('[name=idempotencyKey]')).toBe(key)
    expect(await orders(customer)).toBe(0)
    await page.fill('#totalCents', '40')
    await page.click('button[type=submit]')
    await placed(page)
    expect(await orders(customer)).toBe(1)
  })
})
