/**
 * The server lets the page write HTML only as what DOMPurify has made of it, and load a worker only from one address: its policy names
 * these two and no other (require-trusted-types-for). A browser without Trusted Types takes plain strings, as before.
 */

/**
 * TRUSTED has DOMPurify give its HTML in the form that such a browser takes. Its type says string, since that is how it is handled: it
 * is kept, compared and given to the page, and never put together with other text.
 */
export const TRUSTED_OUTPUT = { RETURN_TRUSTED_TYPE: true as boolean }

interface Policies {
  createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(address: string): unknown }
}

const WORKER = './sw.js'

/** workerAddress is that of the service worker, the only script the page loads by itself. */
export function workerAddress(): string {
  const { trustedTypes } = window as { trustedTypes?: Policies }
  return (trustedTypes?.createPolicy('hermes-mobile', { createScriptURL: () => WORKER }).createScriptURL(WORKER) ?? WORKER) as string
}
