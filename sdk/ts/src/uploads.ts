/**
 * Files that are sent after all, also when the page is closed or the process ends in the middle: they are kept until the server has them, and
 * the next life sends them again under the same id, by which the server drops a double.
 *
 * @packageDocumentation
 */
import { newID } from './config.js'
import type { Device } from './device.js'
import { ClosedError, FrameError } from './errors.js'
import type { Outgoing } from './outgoing.js'
import type { FileToSend } from './upload.js'

/** A file that waits for its receipt. A browser's IndexedDB keeps it as it is, where its data is a Blob or bytes. */
export interface KeptFile extends Omit<FileToSend, 'progress'> {
  /** Of the message. */
  id: string
}

/** Where such files are kept. Each method may return at once or give a promise. One Uploads uses it at a time. */
export interface FileStore {
  /** What is kept, in the order it was added. It is called once. */
  load(): KeptFile[] | Promise<KeptFile[]>
  /** Once it is done the file must survive what the store promises. */
  add(file: KeptFile): void | Promise<void>
  /** Forgets a file; one that is not there is no error. */
  remove(id: string): void | Promise<void>
}

/** Uploads sends files of one device and keeps them until they have their receipt. Make it with openUploads. */
export class Uploads {
  /** @internal */
  constructor(
    private readonly device: Device,
    private readonly store: FileStore,
  ) {}

  /** send is Device.sendFile with a store: the file is kept once the promise is kept, until it has its receipt or is refused. */
  async send({ progress, ...file }: FileToSend, { id = newID() } = {}): Promise<Outgoing> {
    await this.store.add({ ...file, id })
    try {
      return await this.begin({ ...file, id }, progress)
    } catch (error) {
      if (!(error instanceof ClosedError)) await this.store.remove(id)
      throw error
    }
  }

  /** @internal */
  async begin({ id, ...file }: KeptFile, progress: FileToSend['progress']): Promise<Outgoing> {
    const outgoing = await this.device.sendFile({ ...file, progress }, { id })
    void this.settle(outgoing)
    return outgoing
  }

  /** A file is forgotten with its receipt. What the end of the device cut off stays, and so does what the store fails to forget: the server knows it by its id. */
  private async settle(outgoing: Outgoing): Promise<void> {
    try {
      await outgoing.wait().catch((error: unknown) => {
        if (error instanceof ClosedError) throw error
      })
      await this.store.remove(outgoing.id)
    } catch {
      // The next life sends it.
    }
  }
}

/** What is told of files that an earlier life left. */
export interface Leftovers {
  /** As FileToSend.progress. */
  progress?: (file: KeptFile, sent: number, total: number) => void
  /** It cannot be sent, because it is larger than the server takes now, and is forgotten. What the server refuses comes as an event `receipt`. */
  refused?: (file: KeptFile, error: FrameError) => void
}

/** openUploads sends what an earlier life left, and gives what sends more. */
export async function openUploads(device: Device, store: FileStore, { progress, refused }: Leftovers = {}): Promise<Uploads> {
  const uploads = new Uploads(device, store)
  for (const file of await store.load()) {
    try {
      await uploads.begin(file, (sent, total) => progress?.(file, sent, total))
    } catch (error) {
      // An agent that takes no files now, or a device that was closed: it stays for the next life.
      if (!(error instanceof FrameError)) continue
      await store.remove(file.id)
      refused?.(file, error)
    }
  }
  return uploads
}
