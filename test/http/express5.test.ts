import express from 'express'
import { bodySuite } from './suite/bodies.js'
import { keySuite } from './suite/keys.js'

keySuite(express)
bodySuite(express)
