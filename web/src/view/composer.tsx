import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { readLocal, writeLocal } from '../storage/localStorage'
import { itemText } from '../conversation/item'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { mediaKind, acceptsKind } from '../conversation/mediaKind'
import { AttachmentRow, kindRejectedText, prepareAttachment } from './attachment'
import { useOutside } from './outside'
import { Icon } from './icon'
import { useMediaQuery } from './mediaQuery'
import { showError, showToast } from './toast'
import { CommandList, comboboxProps, useCommandPalette } from './commandPalette'
import { Recorder } from './recorder'
import { replyTarget } from './state'
import type { AddToReply } from './steer'

/**
 * Composer is where the user writes, attaches files, and records. Unsent input survives a reload.
 */
export function Composer({ client }: { client: Client }) {
  const draft = 'hermes.draft.' + client.profile.id
  const [text, show] = useState(() => readLocal(draft))
  const setText = (text: string) => {
    show(text)
    writeLocal(draft, text) // immediately: the page may be gone with the next key
  }
  const [menu, setMenu] = useState(false)
  const [over, setOver] = useState(false)
  const [recording, setRecording] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  const choice = useRef<HTMLDivElement>(null)
  useOutside(menu, choice, () => setMenu(false))
  const touch = useMediaQuery('(pointer: coarse)')
  const { capabilities, agent, state } = client.status.value
  const { typing, avatar } = client.activity.value
  const known = agent !== '' // before the first connection nothing is known, so nothing is forbidden
  const may = (kind: string) => !known || acceptsKind(capabilities, kind)
  const quoted = replyTarget.value
  const files = client.attachments.list.value
  const palette = useCommandPalette(client, text)
  const busy = state === 'online' && (typing || avatar !== 'idle') && capabilities.stop
  const empty = !text.trim() && files.length === 0
  const steers = busy && capabilities.steer && !recording && files.length === 0 && /^\s*[^\s/]/.test(text)
  const [Steer, setSteer] = useState<{ View: typeof AddToReply }>()
  useEffect(() => {
    if (steers && !Steer) void import('./steer').then(({ AddToReply }) => setSteer({ View: AddToReply })).catch(() => {}) // then the text waits for its own turn
  }, [steers])

  useLayoutEffect(() => {
    const box = field.current!
    box.style.height = 'auto'
    box.style.height = box.scrollHeight + 'px'
  }, [text])

  const attach = async (list: Iterable<File>) => {
    setMenu(false)
    if (known && !capabilities.media) return showToast(t('noFiles'))
    for (const file of list) {
      if (known && !acceptsKind(capabilities, mediaKind(file.type))) {
        showToast(kindRejectedText(file.name, capabilities))
        continue
      }
      const taken = await prepareAttachment(file, capabilities.max_media_bytes)
      if (typeof taken === 'string') showToast(taken)
      else void client.attachments.add(taken)
    }
    field.current?.focus()
  }

  const send = async (event?: Event, steer = false) => {
    event?.preventDefault()
    if (empty) return
    // The agent accepted the file when it was attached. Send nothing and keep it.
    const refused = known && files.find((file) => !acceptsKind(capabilities, mediaKind(file.blob.type)))
    if (refused) return showToast(capabilities.media ? kindRejectedText(refused.name, capabilities) : t('noFiles'))
    const words = text.trim()
    setText('')
    client.attachments.take()
    replyTarget.value = undefined
    field.current?.focus()
    try {
      if (files.length === 0) await client.sender.sendText(words, quoted, steer)
      for (const [i, file] of files.entries()) {
        const { blob, name } = file.reduce && file.smaller ? file.smaller : file
        await client.sender.sendFile({ id: file.id, blob, name, caption: i === 0 ? words : '' })
        await client.attachments.remove(file.id)
      }
    } catch (error) {
      showError(error)
    }
  }

  const complete = (at?: number) => {
    const taken = palette.take(at)
    if (taken === undefined) return
    setText(taken)
    field.current?.focus()
  }

  /** inPalette handles a key in the palette. It returns false if the key isn't for the palette. */
  const inPalette = (event: KeyboardEvent): boolean => {
    const { found, active } = palette
    if (found.length === 0 || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false
    if (event.key === 'ArrowDown') palette.choose((active + 1) % found.length)
    else if (event.key === 'ArrowUp') palette.choose((active + found.length - 1) % found.length)
    else if (event.key === 'Tab' || (event.key === 'Enter' && palette.completes)) complete()
    else if (event.key === 'Escape') palette.close()
    else return false
    event.preventDefault()
    return true
  }

  const key = (event: KeyboardEvent) => {
    if (inPalette(event)) return
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && (!touch || event.ctrlKey || event.metaKey)) void send(event)
    if (event.key === 'Escape') replyTarget.value = undefined
  }

  const paste = (event: ClipboardEvent) => {
    const list = event.clipboardData?.files
    if (!list?.length) return
    event.preventDefault()
    void attach(list)
  }

  // A file can be dropped anywhere on the page.
  useEffect(() => {
    const hasFiles = (e: DragEvent) => e.dataTransfer?.types.includes('Files')
    const drag = (e: DragEvent) => {
      if (!hasFiles(e)) return
      e.preventDefault()
      setOver(true)
    }
    const leave = (e: DragEvent) => !e.relatedTarget && setOver(false)
    const drop = (e: DragEvent) => {
      if (!hasFiles(e)) return
      e.preventDefault()
      setOver(false)
      void attach([...e.dataTransfer!.files])
    }
    addEventListener('dragover', drag)
    addEventListener('dragleave', leave)
    addEventListener('drop', drop)
    return () => {
      removeEventListener('dragover', drag)
      removeEventListener('dragleave', leave)
      removeEventListener('drop', drop)
    }
  })

  return (
    <form class={`composer ${over ? 'dragging' : ''}`} onSubmit={send}>
      {quoted && (
        <div class="reply-target">
          <Icon name="reply" /><span class="reply-target-text" dir="auto"><b>{quoted.mine ? t('you') : t('agent')}</b> {itemText(quoted).slice(0, 160)}</span>
          <button type="button" class="round" aria-label={t('cancelReply')} onClick={() => (replyTarget.value = undefined)}><Icon name="close" /></button>
        </div>
      )}
      {files.length > 0 && <ul class="attached" aria-label={t('attached')}>{files.map((file) => <AttachmentRow key={file.id} file={file} attachments={client.attachments} />)}</ul>}
      {!recording && <CommandList palette={palette} take={complete} />}
      {over && <div class="drop-zone" aria-hidden="true">{t('dropHere')}</div>}
      {steers && Steer && <Steer.View add={() => void send(undefined, true)} />}
      {recording ? <Recorder client={client} done={() => setRecording(false)} /> : (
        <div class="compose-line">
          {(!known || capabilities.media) && (
            <div class="attach" ref={choice} onKeyDown={(e) => e.key === 'Escape' && setMenu(false)}>
              <button type="button" class="round" aria-label={t('attach')} aria-expanded={menu} aria-controls="attach-menu" onClick={() => setMenu(!menu)}><Icon name="attach" /></button>
              {menu && (
                <div class="menu" id="attach-menu" role="group" aria-label={t('attach')}>
                  {(may('image') || may('video')) && (
                    <Picker icon="photo" label={t(!may('video') ? 'photo' : !may('image') ? 'video' : 'photoOrVideo')} multiple take={attach}
                      accept={['image', 'video'].filter(may).map((kind) => kind + '/*').join(',')} />
                  )}
                  {touch && may('image') && <Picker icon="camera" label={t('camera')} accept="image/*" capture take={attach} />}
                  {may('document') ? <Picker icon="file" label={t('anyFile')} multiple take={attach} /> : may('audio') && <Picker icon="file" label={t('soundFile')} accept="audio/*" multiple take={attach} />}
                </div>
              )}
            </div>
          )}
          <textarea id="composer" ref={field} rows={1} value={text} dir="auto" aria-label={t('message')} placeholder={t('message')} enterkeyhint={touch ? 'enter' : 'send'}
            {...(palette.found.length > 0 && comboboxProps(palette))}
            onInput={(e) => setText(e.currentTarget.value)} onKeyDown={key} onPaste={paste} />
          {busy && <button type="button" class="round stop" aria-label={t('stop')} onClick={() => void client.device.stop({ signal: AbortSignal.timeout(5000) }).catch(showError)}><Icon name="stop" /></button>}
          {empty && (!known || capabilities.audio) ? (
            !busy && <button type="button" class="round" aria-label={t('record')} onClick={() => setRecording(true)}><Icon name="mic" /></button>
          ) : (
            (!busy || !empty) && <button type="submit" class="round primary" aria-label={t(steers ? 'sendAfterReply' : 'send')} disabled={empty}><Icon name="send" /></button>
          )}
        </div>
      )}
    </form>
  )
}

interface PickerProps {
  icon: 'photo' | 'camera' | 'file'
  label: string
  accept?: string
  multiple?: boolean
  capture?: boolean
  take: (files: Iterable<File>) => Promise<void>
}

/** Picker is a menu item that opens the system's file dialog. */
function Picker({ icon, label, accept, multiple, capture, take }: PickerProps) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <button type="button" onClick={() => input.current?.click()}><Icon name={icon} />{label}</button>
      <input ref={input} class="hidden" type="file" tabindex={-1} aria-hidden="true" accept={accept} multiple={multiple} {...(capture && { capture: 'environment' })}
        onChange={(e) => void take([...(e.currentTarget.files ?? [])])} />
    </>
  )
}
