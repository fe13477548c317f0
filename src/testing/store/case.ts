/** A case of the store suite, before it knows which store it is to prove. */
import type { SuiteCase } from '../suite.js'
import type { Ability, StoreHarness } from './harness.js'
import { inRoom, type Room } from './room.js'

/** What a case may need besides the basic functions of a store. */
export type Need = Ability | 'ledger' | 'own' | 'plant' | 'processes'

export interface StoreCase {
  readonly rule: number
  readonly name: string
  readonly needs: readonly Need[]
  readonly body: <Tx extends object>(room: Room<Tx>) => Promise<void>
}

export function test(rule: number, name: string, needs: readonly Need[], body: StoreCase['body']): StoreCase {
  return { rule, name, needs, body }
}

/** The case for one store; where the harness does not have what it needs, it carries the reason. */
export function caseFor<Tx extends object>(
  harness: StoreHarness<Tx>,
  { rule, name, needs, body }: StoreCase,
): SuiteCase {
  const reason = needs.map((need) => reasonToSkip(harness, need)).find((text) => text !== undefined)
  return { rule, name, ...(reason !== undefined && { skip: reason }), run: () => inRoom(harness, body) }
}

function reasonToSkip<Tx extends object>(harness: StoreHarness<Tx>, need: Need): string | undefined {
  switch (need) {
    case 'transactions':
    case 'sweeping':
    case 'operating':
    case 'idleTimeout':
      return harness.lacks?.[need]
    case 'ledger':
      return harness.ledger === undefined ? 'the harness has no ledger of effects' : undefined
    case 'own':
      return harness.own === undefined ? 'the harness opens no transaction of its own' : undefined
    case 'plant':
      return harness.plant === undefined ? 'the harness cannot plant this shape of record' : undefined
    case 'processes':
      return harness.processes === undefined ? 'the store lives in one process' : undefined
    default:
      return need satisfies never
  }
}
