/** The store on real Redis servers (Debian's 7.0), over every client: one server, and a cluster of three. */
import { describe } from 'vitest'
import { redisProgram } from '../../servers/redis.js'
import { missing } from './debian.js'
import { clientNames } from './processes/redis-clients.js'
import { redisSuite } from './redis-suite.js'

const reason = missing(redisProgram, 'redis-server')

describe.skipIf(reason !== undefined).each(clientNames)(
  `redis over %s (${reason ?? 'the suite'})`,
  (client) => redisSuite(client),
)
