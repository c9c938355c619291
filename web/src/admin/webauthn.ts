import { requestJSON } from './api'

/**
 * Requests and answers of WebAuthn hold bytes, which the server reads and writes in base64url. Browsers can do that themselves, but
 * not all that are in use.
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

/** supported says whether this browser has passkeys at all. */
export const passkeysSupported = () => typeof PublicKeyCredential === 'function' && !!navigator.credentials

const credentialFields = (credential: PublicKeyCredential) => ({ id: credential.id, rawId: toText(credential.rawId), type: credential.type, clientExtensionResults: {} })

/** create has the browser make a passkey, and gives what the server wants to see of it. */
export async function createPasskey({ publicKey: o }: CreateOptions): Promise<object> {
  const made = (await navigator.credentials.create({
    publicKey: { ...o, challenge: fromText(o.challenge), user: { ...o.user, id: fromText(o.user.id) }, excludeCredentials: o.excludeCredentials?.map((one) => ({ ...one, id: fromText(one.id) })) },
  })) as PublicKeyCredential
  const response = made.response as AuthenticatorAttestationResponse
  return { ...credentialFields(made), response: { clientDataJSON: toText(response.clientDataJSON), attestationObject: toText(response.attestationObject) } }
}

/** get has the browser answer with a passkey. */
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

/** answers logs in with a passkey, for options that the server gave or is asked for. */
export async function authenticate<T>(options?: GetOptions): Promise<T> {
  const credential = await getAssertion(options ?? (await requestJSON<GetOptions>('/passkey/ask', {})))
  return requestJSON<T>('/passkey/login', { credential })
}

/** stopped says whether a person or the browser broke it off, rather than the server. */
export const wasAborted = (error: unknown) => error instanceof DOMException
