import { requestJSON } from './api'

/**
 * WebAuthn requests and answers contain bytes, which the server reads and writes as base64url.
 * Browsers can convert these, but not all that are in use do.
 */
const fromText = (text: string) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0))
const toText = (bytes: ArrayBuffer) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')

interface Encoded {
  id: string
}
export interface CreateOptions {
  publicKey: Omit<PublicKeyCredentialCreationOptions, 'challenge' | 'user' | 'excludeCredentials'> & {
    challenge: string
    user: Omit<PublicKeyCredentialUserEntity, 'id'> & Encoded
    excludeCredentials?: (Omit<PublicKeyCredentialDescriptor, 'id'> & Encoded)[]
  }
}
export interface GetOptions {
  publicKey: Omit<PublicKeyCredentialRequestOptions, 'challenge'> & { challenge: string }
}

/** passkeysSupported reports whether this browser supports passkeys. */
export const passkeysSupported = () => typeof PublicKeyCredential === 'function' && !!navigator.credentials

const credentialFields = (credential: PublicKeyCredential) => ({ id: credential.id, rawId: toText(credential.rawId), type: credential.type, clientExtensionResults: {} })

/** createPasskey has the browser create a passkey and returns the server's view of it. */
export async function createPasskey({ publicKey: o }: CreateOptions): Promise<object> {
  const made = (await navigator.credentials.create({
    publicKey: { ...o, challenge: fromText(o.challenge), user: { ...o.user, id: fromText(o.user.id) }, excludeCredentials: o.excludeCredentials?.map((one) => ({ ...one, id: fromText(one.id) })) },
  })) as PublicKeyCredential
  const response = made.response as AuthenticatorAttestationResponse
  return { ...credentialFields(made), response: { clientDataJSON: toText(response.clientDataJSON), attestationObject: toText(response.attestationObject) } }
}

/** getAssertion has the browser sign with a passkey. */
async function getAssertion({ publicKey: o }: GetOptions): Promise<object> {
  const got = (await navigator.credentials.get({ publicKey: { ...o, challenge: fromText(o.challenge), allowCredentials: [] } })) as PublicKeyCredential
  const response = got.response as AuthenticatorAssertionResponse
  return {
    ...credentialFields(got),
    response: {
      clientDataJSON: toText(response.clientDataJSON), authenticatorData: toText(response.authenticatorData), signature: toText(response.signature),
      userHandle: response.userHandle ? toText(response.userHandle) : undefined,
    },
  }
}

/** authenticate logs in with a passkey, using the given options or new ones from the server. */
export async function authenticate<T>(options?: GetOptions): Promise<T> {
  const credential = await getAssertion(options ?? (await requestJSON<GetOptions>('/passkey/ask', {})))
  return requestJSON<T>('/passkey/login', { credential })
}

/** wasAborted reports whether the user or the browser, not the server, ended the request. */
export const wasAborted = (error: unknown) => error instanceof DOMException
