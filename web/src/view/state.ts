import { signal } from '@preact/signals'
import type { Client } from '../conversation/client'
import type { Item } from '../conversation/item'

/** The item that the next message replies to. */
export const replyTarget = signal<Item | undefined>(undefined)

/** Whether a user who is signed in, or was, pairs this browser again. */
export const pairingAgain = signal(false)

/**
 * canWrite reports whether the owner lets this device write. Before the first connection nothing is
 * known, so nothing is forbidden.
 */
export const canWrite = ({ status }: Client): boolean => status.value.agent === '' || status.value.capabilities.text
