/** A process of the suite: opens a store of the module it is told, does tasks, and ends when its channel closes. */
import { systemClock } from '../../clock.js'
import { type Retrysafe, retrysafe } from '../../retrysafe.js'
import { present } from '../check.js'
import type { OpenedStore, ProcessModule } from './harness.js'
import type { FromChild, ToChild } from './processes.js'
import { aheadMs } from './room.js'
import { perform } from './tasks.js'

interface Opened extends OpenedStore<object> {
  readonly ledger: ProcessModule<object>['ledger']
}

let opened: Opened | undefined
const instances: Retrysafe<object>[] = []

async function answerTo(message: ToChild): Promise<unknown> {
  if (message.do === 'open') {
    const module = (await import(message.module)) as ProcessModule<object>
    opened = { ...(await module.open(message.data)), ledger: module.ledger }
    return undefined
  }
  const { store, ledger } = present('the store of this process', opened)
  const { task } = message
  const waitMs = task.do === 'attempt' ? task.asked.waitMs : 0
  return perform(
    store,
    ledger,
    () => {
      const clock = { ...systemClock, now: () => aheadMs }
      const instance = retrysafe<object>({ store, clock, whileRunning: { waitMs } })
      instances.push(instance)
      return instance
    },
    task,
  )
}

process.on('message', async (message: ToChild) => {
  const { id } = message
  const reply: FromChild = await answerTo(message).then(
    (answer) => ({ id, answer }),
    (error: unknown) => ({ id, failure: error instanceof Error ? String(error.stack) : String(error) }),
  )
  process.send?.(reply)
})

process.on('disconnect', async () => {
  for (const instance of instances) await instance.close()
  await opened?.close()
})
