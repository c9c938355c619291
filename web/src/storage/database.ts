/**
 * The database of one device at one server: its history, files, outgoing frames, cursor, and token.
 */

const VERSION = 1
const PREFIX = 'hermes-mobile '

/** done resolves when the transaction is on disk. */
export function done(tx: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    tx.oncomplete = () => resolve()
    tx.onabort = tx.onerror = () => reject(tx.error ?? new Error('the browser could not store this'))
  })
}

/** result returns the result of a request. */
export function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('the browser could not read this'))
  })
}

/** openDatabase opens or creates the database of a device at a server. */
export function openDatabase(server: string, device: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(PREFIX + server + ' ' + device, VERSION)
    request.onupgradeneeded = () => {
      const db = request.result
      const items = db.createObjectStore('items', { keyPath: 'key' })
      items.createIndex('n', 'n')
      items.createIndex('progress', 'progress')
      db.createObjectStore('blobs')
      db.createObjectStore('outgoing', { autoIncrement: true }).createIndex('id', 'id')
      db.createObjectStore('state')
    }
    request.onsuccess = () => {
      const db = request.result
      db.onversionchange = () => db.close() // another tab is deleting it
      resolve(db)
    }
    request.onerror = () => reject(request.error ?? new Error('the browser keeps no data'))
  })
}

/** deleteDatabase deletes everything that is stored for a device. */
export function deleteDatabase(server: string, device: string): Promise<void> {
  return new Promise((resolve) => {
    const request = indexedDB.deleteDatabase(PREFIX + server + ' ' + device)
    request.onsuccess = request.onerror = request.onblocked = () => resolve()
  })
}
