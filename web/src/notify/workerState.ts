import { done, result } from '../storage/database'

/**
 * WorkerState is what the page leaves for its service worker, which can't ask the page: the
 * language and the server's key. It exists only while notifications are on, in one database for
 * each address of the page.
 */
export interface WorkerState {
  language?: string
  key?: string
}

const STORE = 'state'

function openDatabase(scope: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('hermes-push ' + scope, 1)
    request.onupgradeneeded = () => void request.result.createObjectStore(STORE)
    request.onsuccess = () => {
      request.result.onversionchange = () => request.result.close()
      resolve(request.result)
    }
    request.onerror = () => reject(request.error ?? new Error('the browser keeps no data'))
  })
}

export async function saveWorkerState(scope: string, memory: WorkerState): Promise<void> {
  const db = await openDatabase(scope)
  try {
    const tx = db.transaction(STORE, 'readwrite')
    for (const [name, value] of Object.entries(memory)) tx.objectStore(STORE).put(value, name)
    await done(tx)
  } finally {
    db.close()
  }
}

export async function loadWorkerState(scope: string): Promise<WorkerState> {
  const db = await openDatabase(scope)
  try {
    const store = db.transaction(STORE).objectStore(STORE)
    const [language, key] = await Promise.all([result(store.get('language')), result(store.get('key'))])
    return { language: language as string | undefined, key: key as string | undefined }
  } finally {
    db.close()
  }
}

/** clearWorkerState deletes it. */
export function clearWorkerState(scope: string): Promise<void> {
  return new Promise((resolve) => {
    const request = indexedDB.deleteDatabase('hermes-push ' + scope)
    request.onsuccess = request.onerror = request.onblocked = () => resolve()
  })
}
