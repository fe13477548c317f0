import express from 'express'
import { answerSuite } from './suite/answers.js'
import { bodySuite } from './suite/bodies.js'
import { failureSuite } from './suite/failures.js'
import { hangUpSuite } from './suite/hangups.js'
import { holdingSuite } from './suite/holding.js'
import { keptSuite } from './suite/kept.js'
import { keySuite } from './suite/keys.js'
import { lateSuite } from './suite/late.js'
import { throwSuite } from './suite/throws.js'

keySuite(express)
bodySuite(express)
answerSuite(express)
holdingSuite(express)
hangUpSuite(express)
keptSuite(express)
failureSuite(express)
throwSuite(express)
lateSuite(express)
