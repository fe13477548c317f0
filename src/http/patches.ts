/**
 * Members of an object replaced for a while, and put back unless somebody has replaced them again in the meantime.
 */

export interface Patches {
  /** Puts a function, or nothing, in the place of a member. */
  replace(name: string, value: ((...values: never[]) => unknown) | null): void
  /** Lets a member that the prototype computes read as something else. */
  mask(name: string, read: (real: unknown) => unknown): void
  undo(): void
}

export function createPatches(target: object): Patches {
  const undoing: (() => void)[] = []

  function replace(name: string, value: ((...values: never[]) => unknown) | null): void {
    const own = Object.getOwnPropertyDescriptor(target, name)
    Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true })
    undoing.push(() => {
      // Middleware that came after has wrapped ours: taking it away would take theirs away too.
      if (Reflect.get(target, name) === value) restore(name, own)
    })
  }

  function mask(name: string, read: (real: unknown) => unknown): void {
    const get = () => read(Reflect.get(Object.getPrototypeOf(target), name, target))
    Object.defineProperty(target, name, { get, configurable: true })
    undoing.push(() => {
      if (Object.getOwnPropertyDescriptor(target, name)?.get === get) restore(name, undefined)
    })
  }

  function restore(name: string, own: PropertyDescriptor | undefined): void {
    if (own === undefined) Reflect.deleteProperty(target, name)
    else Object.defineProperty(target, name, own)
  }

  function undo(): void {
    // Last first, so that a member replaced twice ends as it was.
    for (const step of undoing.splice(0).reverse()) step()
  }

  return { replace, mask, undo }
}
