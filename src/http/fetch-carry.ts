/**
 * Carries a call of the fetch kind through its exchange: what its handler answers is taken apart, and the answer may have to go out before
 * the exchange has ended. An adapter says how the handler is run and where the response goes.
 */
import type { Exchange, HttpAttempt, HttpCall, Performed } from './exchange.js'
import { captureResponse, type ResponseCapture, responseOf } from './fetch-capture.js'
import { checkReply } from './reply.js'

/** What a handler came to: a `Reply` or a `Response`, and what it threw where that is an answer all the same. */
export interface Answered {
  readonly answer: unknown
  readonly error?: unknown
}

export type Carried =
  /** Not covered: the handler runs unprotected. */
  | { readonly do: 'pass' }
  /** `own`: the handler's answer, once it may be seen; `answer`: what is said in its place. */
  | { readonly do: 'own' | 'answer'; readonly response: Response }

/** Rejects only with what the user's own code threw. */
export async function carry<Tx>(
  exchange: Exchange<Tx>,
  call: HttpCall,
  run: (attempt: HttpAttempt<Tx>, body: unknown) => Promise<Answered>,
): Promise<Carried> {
  let capture: ResponseCapture | undefined
  let goEarly: (carried: Carried) => void = () => undefined
  const early = new Promise<Carried>((resolve) => {
    goEarly = resolve
  })

  async function perform(attempt: HttpAttempt<Tx>, body: unknown): Promise<Performed> {
    const { answer, error } = await run(attempt, body)
    if (!(answer instanceof Response)) {
      return { reply: checkReply(answer, 'a handler'), whole: true, fault: 'none' }
    }
    capture = captureResponse(answer, exchange.settings, error)
    void capture.early.then((response) => goEarly({ do: 'own', response }))
    return capture.performed
  }

  const verdict = exchange.run(call, perform).then(
    (settled): Carried => {
      capture?.conclude(settled.do === 'own' ? 'end' : 'break')
      return settled.do === 'pass' ? settled : { do: settled.do, response: responseOf(settled.reply) }
    },
    (error: unknown) => {
      capture?.conclude('break')
      throw error
    },
  )
  // Where the answer goes out early, its end has told already what the verdict is.
  verdict.catch(() => undefined)
  return Promise.race([verdict, early])
}
