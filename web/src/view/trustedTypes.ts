/**
 * The server's policy (require-trusted-types-for) allows HTML only from DOMPurify, and a worker
 * only from one address. It names these two policies and no other. A browser without Trusted Types
 * takes plain strings.
 */

/**
 * TRUSTED_OUTPUT makes DOMPurify return TrustedHTML. The type says string, because the page treats
 * the result like one: it stores, compares, and inserts it, and never joins it with other text.
 */
export const TRUSTED_OUTPUT = { RETURN_TRUSTED_TYPE: true as boolean }

interface Policies {
  createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(address: string): unknown }
}

const WORKER = './sw.js'

/**
 * workerAddress returns the address of the service worker, the only script that the page loads
 * itself.
 */
export function workerAddress(): string {
  const { trustedTypes } = window as { trustedTypes?: Policies }
  return (trustedTypes?.createPolicy('hermes-mobile', { createScriptURL: () => WORKER }).createScriptURL(WORKER) ?? WORKER) as string
}
