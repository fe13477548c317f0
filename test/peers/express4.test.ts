/** Express 4, by the tests of Express 5: what is used of it is the same. */
import { createRequire } from 'node:module'
import { answerSuite } from '../http/suite/answers.js'
import { bodySuite } from '../http/suite/bodies.js'
import { failureSuite } from '../http/suite/failures.js'
import { hangUpSuite } from '../http/suite/hangups.js'
import { holdingSuite } from '../http/suite/holding.js'
import { keptSuite } from '../http/suite/kept.js'
import { keySuite } from '../http/suite/keys.js'
import { lateSuite } from '../http/suite/late.js'
import type { ExpressModule } from '../http/suite/site.js'
import { throwSuite } from '../http/suite/throws.js'

// It brings no types; what the tests use of it is what Express 5 has.
const express: ExpressModule = createRequire(import.meta.url)('express4')

keySuite(express)
bodySuite(express)
answerSuite(express)
holdingSuite(express)
hangUpSuite(express)
keptSuite(express)
failureSuite(express)
throwSuite(express)
lateSuite(express)
