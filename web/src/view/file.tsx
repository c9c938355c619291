import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { mediaLink } from '../conversation/address'
import { LINK_LIFETIME, type FileItem } from '../conversation/item'
import type { Client } from '../conversation/client'
import { t } from '../i18n/i18n'
import { formatBytes } from './clock'
import { Icon } from './icon'
import { prefersReducedMotion } from './mediaQuery'
import { DisplayName, displayName } from './displayName'
import { AudioPlayer } from './audioPlayer'
import { MessageText } from './messageText'

/** useFile returns a URL for a file: its stored bytes, or the server's link until it expires. */
function useFile(client: Client, item: FileItem): { url: string; state: 'loading' | 'here' | 'linked' | 'gone' } {
  const [url, setUrl] = useState('')
  const [missing, setMissing] = useState(false)
  useEffect(() => {
    if (item.url || item.error && !item.mine) return
    let made = ''
    let over = false
    void client.conversation.history.blob(item.key).catch(() => undefined).then((blob) => {
      if (over) return
      if (!blob) return setMissing(true)
      made = URL.createObjectURL(viewable(item) ? blob : new Blob([blob], { type: 'application/octet-stream' }))
      setUrl(made)
    })
    return () => {
      over = true
      if (made) URL.revokeObjectURL(made)
    }
  }, [client, item.key, item.url])
  if (item.url) return Date.now() < item.at + LINK_LIFETIME ? { url: mediaLink(item.url), state: 'linked' } : { url: '', state: 'gone' }
  return { url, state: url ? 'here' : missing || item.error ? 'gone' : 'loading' }
}

/**
 * viewable reports whether an element that runs no code can show the file. Others can only be
 * saved.
 */
function viewable(item: FileItem): boolean {
  return /^(image|video|audio)\//.test(item.mime)
}

/** File shows a picture, a recording, a video, or a file to save. */
export function File({ item, client }: { item: FileItem; client: Client }) {
  const { url, state } = useFile(client, item)
  const upload = client.sender.uploads.get(item.key)
  const fraction = item.progress === 'waiting' ? upload?.value : undefined
  return (
    <>
      <Shown item={item} url={url} state={state} />
      {fraction !== undefined && <progress class="upload" max={1} value={fraction} aria-label={t('uploading')} />}
      {item.caption && (item.mine ? <div class="text plain" dir="auto">{item.caption}</div> : <MessageText text={item.caption} finished />)}
    </>
  )
}

function Shown({ item, url, state }: { item: FileItem; url: string; state: string }) {
  const { fileKind, mime } = item
  const [broken, setBroken] = useState(false)
  const fail = () => setBroken(true)
  if (state === 'loading') return <div class="file-wait" aria-busy="true" />
  if (url && !broken) {
    if (fileKind === 'image' || (fileKind === 'animation' && mime.startsWith('image/'))) return <Picture item={item} url={url} fail={fail} />
    if (fileKind === 'animation' && mime.startsWith('video/')) return <video class="video" src={url} loop muted playsInline autoplay={!prefersReducedMotion()} controls={prefersReducedMotion()} onError={fail} aria-label={displayName(item.name)} />
    if (fileKind === 'video') return <video class="video" src={url} controls playsInline preload="metadata" onError={fail} aria-label={displayName(item.name)} />
    if (fileKind === 'voice' || fileKind === 'audio') return <AudioPlayer src={url} name={fileKind === 'voice' ? t('voiceMessage') : displayName(item.name)} fail={fail} />
  }
  return (
    <div class="file">
      <span class="file-icon"><Icon name="file" /></span>
      <span class="file-text"><b><DisplayName of={item.name} /></b><small>{item.error && !item.mine ? item.error : state === 'gone' ? t(item.url ? 'linkExpired' : 'notOnDevice') : item.size ? formatBytes(item.size) : ''}</small></span>
      {url && <a class="round" href={url} download={item.name} aria-label={t('download', { name: displayName(item.name) })}><Icon name="download" /></a>}
    </div>
  )
}

/** Picture opens in a lightbox. */
function Picture({ item, url, fail }: { item: FileItem; url: string; fail: () => void }) {
  const large = useRef<HTMLDialogElement>(null)
  const [open, setOpen] = useState(false)
  useLayoutEffect(() => {
    if (open) large.current?.showModal()
  }, [open])
  return (
    <>
      <button type="button" class="picture" onClick={() => setOpen(true)} aria-label={t('enlarge', { name: displayName(item.name) })}><img src={url} alt={item.caption || displayName(item.name)} onError={fail} decoding="async" /></button>
      {open && (
        <dialog class="lightbox" ref={large} onClose={() => setOpen(false)} onClick={() => large.current?.close()} aria-label={displayName(item.name)}>
          <img src={url} alt={item.caption || displayName(item.name)} />
          <div class="lightbox-bar">
            <a class="round" href={url} download={item.name} aria-label={t('download', { name: displayName(item.name) })} onClick={(e) => e.stopPropagation()}><Icon name="download" /></a>
            <button type="button" class="round" aria-label={t('close')}><Icon name="close" /></button>
          </div>
        </dialog>
      )}
    </>
  )
}
