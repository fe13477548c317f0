/** Modules of `test/peers`, for the processes that the tests start. */
export { folder, peer } from '../../../servers/peers.js'
